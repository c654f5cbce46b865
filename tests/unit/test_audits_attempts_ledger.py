"""Step 6, section 21: entries of a ledger that stand where they may not, or name another attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_third import ON, UNITS, Step, begin, build, collected, copy, draw, end, fail, rest, start, third

OFF = "main.probe.off"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


# The steps of a collection, and what step 6 says of it.
LEDGERS: dict[str, tuple[tuple[Step, ...], str]] = {
    "an attempt that is not the present one": (
        (start(), begin(ON, 0, 2), *rest(), end()),
        "line 3#/body/attempt: is 2; the present attempt of main.probe.on is 1",
    ),
    "a shard of an attempt that is over": (
        (start(), begin(ON), fail(ON), draw(ON, [0], 1, begun=False), *rest(), end()),
        "line 5#/body/attempt: is 1; the present attempt of main.probe.on is 2",
    ),
    "a shard of an attempt that is to come": (
        (start(), draw(ON, [0], 2), end(False)),
        "line 4#/body/attempt: is 2; the present attempt of main.probe.on is 1",
    ),
    "a failure of another attempt": (
        (start(), fail(ON), fail(ON, attempt=1), *rest(ON), end(False)),
        "line 4#/body/attempt: is 1; the present attempt of main.probe.on is 2",
    ),
    "a failure without a cause": (
        (start(), fail(ON, None), *rest(), end()), "line 3#/body: misses 'cause', which edition 3 asks for",
    ),
    "a failure of a unit that is whole": (
        (start(), *rest(), fail(ON, "study-ceiling"), end()),
        "line 27#/body/unit: all shards of main.probe.on are stored in attempt 1: it did not fail",
    ),
    "a failure in a later run of a unit that is whole": (
        (start(), draw(ON), end(False), start(), fail(ON), *rest(), end()),
        "line 11#/body/unit: all shards of main.probe.on are stored in attempt 1: it did not fail",
    ),
    "a failure of a unit that is whole in its second attempt": (
        (start(), draw(ON, [0]), fail(ON), *rest(), fail(ON, "request-ceiling"), end(False)),
        "line 30#/body/unit: all shards of main.probe.on are stored in attempt 2: it did not fail",
    ),
    "begun after the unit was over": (
        (start(), fail(ON, "unit-ceiling"), begin(ON, 0, 2), *rest(ON), end()),
        "line 4#/body/unit: main.probe.on is over: no `attempt` of it stands after that",
    ),
    "stored after the unit was over": (
        (start(), begin(ON), fail(ON, "study-ceiling"), draw(ON, [0], 1, begun=False), *rest(ON), end()),
        "line 5#/body/unit: main.probe.on is over: no `shard-stored` of it",
    ),
    "a failure after the unit was over": (
        (start(), fail(ON), fail(ON), fail(ON), fail(ON, attempt=4), *rest(ON), end()),
        "line 6#/body/unit: main.probe.on is over: no `unit-invalid` of it",
    ),
    "a duplicate after the unit was over": (
        (start(), draw(ON, [0]), fail(ON, "unit-ceiling"), copy(ON, attempt=1), *rest(ON), end()),
        "line 6#/body/unit: main.probe.on is over: no `duplicate` of it",
    ),
    "begun twice in a run": (
        (start(), begin(ON), *rest(), end()),
        "shard 0 of main.probe.on in attempt 1 was begun before since the last collection-started",
    ),
    "begun after it was stored": (
        (start(), *rest(), end(False), start(), begin(ON, 1), end()),
        "shard 1 of main.probe.on in attempt 1 was stored before",
    ),
    "stored and not begun": (
        (start(), draw(ON, [0], begun=False), draw(ON, [1, 2]), *rest(ON), end()),
        "line 3#/body/attempt: no `attempt` names shard 0 of main.probe.on in attempt 1",
    ),
    "begun in the run before alone": (
        (start(), begin(ON), start(), draw(ON, [0], begun=False), draw(ON, [1, 2]), *rest(ON), end()),
        "line 5#/body/attempt: no `attempt` names shard 0 of main.probe.on in attempt 1 since",
    ),
    "another shard was begun": (
        (start(), begin(ON, 1), draw(ON, [0], begun=False), *rest(ON), end(False)),
        "line 4#/body/attempt: no `attempt` names shard 0",
    ),
    "another unit was begun": (
        (start(), begin(OFF), draw(ON, [0], begun=False), *rest(OFF, ON), end(False)),
        "line 4#/body/attempt: no `attempt` names shard 0",
    ),
    "begun in the attempt before alone": (
        (start(), begin(ON), fail(ON), draw(ON, [0], begun=False), *rest(ON), end(False)),
        "line 5#/body/attempt: no `attempt` names shard 0 of main.probe.on in attempt 2",
    ),
    "stored twice": (
        (start(), draw(ON), draw(ON, [1], begun=False), *rest(ON), end()),
        "line 9#/body/shard: shard 1 of main.probe.on was stored before",
    ),
    "begun before any run": ((begin(ON), start(), *rest(), end()), "line 2#/type: `attempt` cannot"),
    "begun between runs": (
        (start(), end(False), begin(ON), start(), *rest(), end()), "line 4#/type: `attempt` cannot come here",
    ),
    "begun after the end": ((start(), *rest(), end(), begin(ON)), "#/type: `attempt` cannot come here"),
    "begun by a reviewer": (
        (start(), begin(ON, actor="rev@example.org"), end(False)),
        "line 3#/actor: rev@example.org has no role author or collector",
    ),
    "begun, of no plan": (
        (start(), begin("main.probe.up"), end(False)), "line 3#/body/shard: names a shard that is not in",
    ),
    "begun, of too many shards": (
        (start(), begin(ON, 3), end(False)), "line 3#/body/shard: names a shard that is not in",
    ),
    "a duplicate of what was not stored": (
        (start(), draw(ON, [0]), copy(ON, 1), *rest(ON), end(False)),
        "line 5#/body/shard: shard 1 of main.probe.on in attempt 1 was not stored before",
    ),
    "a duplicate of another attempt": (
        (start(), draw(ON, [0]), fail(ON), copy(ON, 0), *rest(ON), end(False)),
        "line 6#/body/shard: shard 0 of main.probe.on in attempt 2 was not stored before",
    ),
    "a duplicate between runs": (
        (start(), *rest(), end(False), copy(ON), start(), end()), "#/type: `duplicate` cannot come here",
    ),
    "a duplicate after the end": (
        (start(), *rest(), end(), copy(ON)), "#/type: `duplicate` cannot come here",
    ),
    "a unit that is not over, told as INVALID": (
        (start(), fail(ON), *rest(), end(invalid=[ON])),
        "#/body/invalid: does not name the units that are INVALID",
    ),
    "a unit that is over, and not told": (
        (start(), fail(ON, "unit-ceiling"), *rest(ON), end(invalid=[])),
        "#/body/invalid: does not name the units that are INVALID",
    ),
    "shards of the last attempts alone": (
        (start(), draw(ON, [0]), fail(ON), *rest(), end(stored=12)),
        "#/body/stored: says 12 shards; the ledger stored 13",
    ),
    "an attempt of a run": (
        (start(attempt=2), *rest(), end()), "line 2#/body/attempt",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_that_is_not_as_section_21_says(tmp_path: Path, keys: Path, name: str) -> None:
    steps, says = LEDGERS[name]
    found = failed(look(build(tmp_path, keys, collected(), *steps).folder))
    assert 6 in found, found
    assert says in found[6]


def _second(name: str, value: Any) -> Any:
    return value | {"edition": 2} if name == "protocol.json" else value


def test_before_edition_3_a_unit_that_is_whole_may_fail(tmp_path: Path, keys: Path) -> None:
    steps = (start(), *(draw(u, begun=False) for u in UNITS), fail(ON, None), end())
    plan = third(_second, attempts=1, upto="collected")
    assert failed(look(build(tmp_path, keys, plan, *steps).folder)) == {}


def test_shards_of_several_attempts_make_no_attempt_whole(tmp_path: Path, keys: Path) -> None:
    steps = (start(), draw(ON, [0, 1]), fail(ON), draw(ON, [2]), fail(ON), *rest(), end())
    assert failed(look(build(tmp_path, keys, collected(), *steps).folder)) == {}


EARLIER: dict[str, tuple[tuple[Step, ...], str]] = {
    "an attempt": (
        (start(), begin(ON), end(False)), "line 3#/type: is of edition 3, and the protocol is of",
    ),
    "a duplicate": (
        (start(), *(draw(u, begun=False) for u in UNITS), copy(ON), end()), "line 15#/type: is of edition 3",
    ),
    "a cause": ((start(), fail(ON), end(False)), "line 3#/body/cause: is of edition 3"),
    "a second attempt": (
        (start(), fail(ON, None, attempt=2), end(False)), "line 3#/body/attempt: is 2: there is one",
    ),
    "a shard of a second attempt": (
        (start(), draw(ON, [0], 2, begun=False), end(False)), "line 3#/body/attempt: is 2: there is one",
    ),
    "INVALID twice": (
        (start(), fail(ON, None, attempt=1), fail(ON, None, attempt=1), end(False)),
        "line 4#/body/unit: main.probe.on was INVALID before",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EARLIER)
def test_entries_of_edition_3_in_a_study_of_edition_2(tmp_path: Path, keys: Path, name: str) -> None:
    steps, says = EARLIER[name]
    found = failed(look(build(tmp_path, keys, third(_second, attempts=1, upto="collected"), *steps).folder))
    assert 6 in found, found
    assert says in found[6]
