"""What edition 3 adds to a protocol, and where it may stand (docs/formats.md sections 6, 20 and 21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from second_fixture import encoded

from prereg.codec.study_files import parse_study
from prereg.errors import PreregError
from prereg.model.study import Study


def parsed(change: Callable[[dict[str, Any]], Any]) -> Study:
    protocol = exact_protocol()
    change(protocol)
    files = exact_files(protocol)
    return parse_study(encoded(files))


def ceilings(**members: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda p: p["ceilings"].update(members)


def both(*changes: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda p: [change(p) for change in changes]


def edition(number: int, **members: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda p: p.update({"edition": number, **members})


def confirming(p: dict[str, Any]) -> None:
    p["stages"][0]["purpose"] = "confirmation"


SOUND: dict[str, Callable[[dict[str, Any]], Any]] = {
    "edition 3 alone": edition(3),
    "two attempts": edition(3, attempts=2),
    "nine attempts": edition(3, attempts=9),
    "a ceiling that leaves open": both(edition(3), ceilings(on_ceiling="INCONCLUSIVE")),
    "memory of containers": both(edition(3, runtime="container"), ceilings(memory_mib=512)),
    "one attempt at a confirmation": both(edition(3), confirming),
}
UNSOUND: dict[str, tuple[Callable[[dict[str, Any]], Any], str, str]] = {
    "attempts in edition 1": (lambda p: p.update(attempts=2), "attempts", "edition 3"),
    "attempts in edition 2": (edition(2, attempts=2), "attempts", "the protocol is of edition 2"),
    "a ceiling in edition 1": (ceilings(on_ceiling="INCONCLUSIVE"), "ceilings/on_ceiling", "edition 3"),
    "memory in edition 2": (
        both(edition(2, runtime="container"), ceilings(memory_mib=512)), "ceilings/memory_mib", "edition 3"
    ),
    "memory without containers": (
        both(edition(3), ceilings(memory_mib=512)), "ceilings/memory_mib", "no worker runs in one"
    ),
    "no attempt": (edition(3, attempts=0), "attempts", "minimum"),
    "ten attempts": (edition(3, attempts=10), "attempts", "maximum"),
    "two attempts at a confirmation": (
        both(edition(3, attempts=2), confirming), "attempts", "stage 'drawn' confirms"
    ),
    "a study that is a device": (edition(3, study="nul"), "study", "'nul', which some systems reserve"),
    "a stage that is a device": (
        both(edition(3), lambda p: p["stages"][0].update(id="com1")), "stages/0/id", "'com1', which some"
    ),
    "a signer that is a device": (
        edition(3, signers={"need": 1, "principals": ["Aux.x"]}), "signers/principals/0", "'Aux.x', which"
    ),
    "edition 4": (edition(4), "edition", "4 is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_what_edition_3_allows(name: str) -> None:
    assert parsed(SOUND[name]).protocol.since(3)


@pytest.mark.parametrize("name", UNSOUND)
def test_what_no_edition_allows(name: str) -> None:
    change, place, what = UNSOUND[name]
    with pytest.raises(PreregError, match=what) as caught:
        parsed(change)
    assert caught.value.where == f"protocol.json#/{place}"


def test_members_of_edition_2_belong_to_edition_3_too() -> None:
    builds = {"plain": {"rows": 1, "shard_requests": 50}}
    found = parsed(both(edition(3), lambda p: p["sampling"]["on"].update(builds=builds)))
    assert found.protocol.sampling["on"].builds is not None
