"""Steps 6 and 7 where the protocol is not known: the key of the seal was compromised, nothing stamped."""

from __future__ import annotations

from pathlib import Path

import pytest
from audits_kit import Copy as Study
from audits_kit import failed, look, make_keys, on_bytes
from audits_seals import revoke
from audits_slow import Json
from audits_third import AGAIN, ON, Step, Third, build, collected, copy, draw, end, fail, rest, start

OFF = "main.probe.off"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def _compromised(builder: Third) -> Third:
    """The author's key is, which signed the seal and the heads before the collection."""
    revoke(builder, "author", "2026-11-29T11:00:00+00:00", "compromised")  # type: ignore[arg-type]
    return builder


# How often the protocol lets a unit be tried, and the steps of a collection that it is sound for.
SOUND: dict[str, tuple[int, tuple[Step, ...]]] = {
    "no failure": (2, (start(), *rest(), end())),
    "tried again": (2, AGAIN),
    "over after its last attempt": (2, (start(), draw(ON, [0]), fail(ON), fail(ON), *rest(ON), end())),
    "over after its one attempt": (1, (start(), fail(ON), *rest(ON), end())),
    "over after a ceiling, another one tried again": (
        3, (start(), fail(ON, "unit-ceiling"), fail(OFF, "request-ceiling"), *rest(ON), end()),
    ),
    "not complete": (2, (start(), fail(ON), fail(ON), end(False), start(), *rest(ON), end())),
    "a second result": (2, (start(), draw(ON), copy(ON), *rest(ON), end())),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_what_rests_on_the_protocol_is_not_judged(tmp_path: Path, keys: Path, name: str) -> None:
    attempts, steps = SOUND[name]
    builder = build(tmp_path, keys, collected(attempts=attempts), *steps)
    assert failed(look(builder.folder)) == {}
    folder = _compromised(builder).folder
    outcome = look(folder, without_history=True)
    assert failed(outcome).keys() == {4}, failed(outcome)
    states = {number: outcome.status(number) for number in range(1, 14)}
    assert states == dict.fromkeys((1, 2, 3, 6), "ok") | {4: "failed"} | dict.fromkeys(
        (5, *range(7, 14)), "not-checked"
    )
    assert failed(look(folder)).keys() == {4, 9}, "the compromised key signed the first head too"


# What no protocol allows is a fault still.
WRONG: dict[str, tuple[tuple[Step, ...], str]] = {
    "over after a ceiling, and not told": (
        (start(), fail(ON, "unit-ceiling"), *rest(ON), end(invalid=[])),
        "#/body/invalid: does not name the units that are INVALID",
    ),
    "told as INVALID, and did not fail": (
        (start(), fail(ON), *rest(), end(invalid=[ON, OFF])),
        "#/body/invalid: does not name the units that are INVALID",
    ),
    "told as INVALID where nothing failed": (
        (start(), *rest(), end(invalid=[ON])), "#/body/invalid: does not name the units that are INVALID",
    ),
    "another attempt than the present one": (
        (start(), fail(ON), fail(ON, attempt=1), *rest(ON), end()), "is 1; the present attempt of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_no_protocol_allows_is_refused(tmp_path: Path, keys: Path, name: str) -> None:
    steps, says = WRONG[name]
    builder = _compromised(build(tmp_path, keys, collected(), *steps))
    found = failed(look(builder.folder, without_history=True))
    assert found.keys() == {4, 6}
    assert says in found[6]


def test_a_second_attempt_in_a_ledger_that_tells_of_no_first(tmp_path: Path, keys: Path) -> None:
    """Nothing is said of an edition that is not known."""

    def second(name: str, value: Json) -> Json:
        is_stored = name == "shard-stored body" and value["unit"] == ON
        return value | {"attempt": 2} if is_stored else value

    steps = (start(), *(draw(unit, begun=False) for unit in (ON,)), end(False))
    builder = _compromised(build(tmp_path, keys, collected(second), *steps))
    found = failed(look(builder.folder, without_history=True))
    assert found.keys() == {4, 6}
    assert "is 2: there is one attempt, for the ledger tells of no failed one" in found[6]


def test_a_study_whose_protocol_is_wrong(tmp_path: Path, keys: Path) -> None:
    """The same where step 5 looked and failed."""
    builder = build(tmp_path, keys, collected(attempts=2), *SOUND["over after its last attempt"][1])
    study = Study(builder.root, keys)
    study.edit("protocol.json", on_bytes(b'"attempts"', b'"attempt_"'))
    outcome = look(builder.folder, without_history=True)
    assert failed(outcome).keys() == {3, 5}, failed(outcome)
