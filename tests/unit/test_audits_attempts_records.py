"""Step 7, section 21: records of several attempts, and second results, that are not as told."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audits_kit import change, failed, look, make_keys, put
from audits_plan import Plan
from audits_slow import Json
from audits_third import (
    AGAIN,
    ON,
    Step,
    build,
    collected,
    copy,
    crash,
    draw,
    end,
    fail,
    rest,
    start,
    third_exact,
    walks,
)
from audits_tools import pack

HOME = f"records/{ON}"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


def record_of(unit: str, attempt: int) -> Callable[[Any], bool]:
    return lambda value: bool(value["unit"] == unit and value["attempt"] == attempt)


def _changed(name: str, edit: Callable[[Any], Any], when: Callable[[Any], bool]) -> Plan:
    return change(name, edit, when, make=collected)


_COPY = (start(), *rest(), copy(ON, 1, crash(0, 3)), end())


def _but(**more: Any) -> tuple[Step, ...]:
    return (start(), *rest(), copy(ON, 1, crash(0, 3), **more), end())


def _lines(change_: Callable[[list[Json]], list[Json]], **more: Any) -> tuple[Step, ...]:
    return (start(), *rest(), copy(ON, 1, change_, **more), end())


def _nth(edit: Callable[[Json], Any]) -> Callable[[list[Json]], list[Json]]:
    """The second line of a second result is other."""

    def lines(some: list[Json]) -> list[Json]:
        edit(some[1])
        return some

    return lines


LINE = "ledger.jsonl line 27"
KEPT = f"{HOME}/00001.duplicate-1.jsonl.gz"
# A plan, the steps, and what step 7 says.
RECORDS: dict[str, tuple[Plan, tuple[Step, ...], str]] = {
    "the meta of an earlier attempt says another": (
        _changed("meta", put("attempt", to=2), record_of(ON, 1)), AGAIN,
        f"{HOME}/00000.meta.json#/attempt: is 2, planned as 1",
    ),
    "the meta of the present attempt says another": (
        _changed("meta", put("attempt", to=1), record_of(ON, 2)), AGAIN,
        f"{HOME}.attempt-2/00000.meta.json#/attempt: is 1, planned as 2",
    ),
    "a record of an earlier attempt says another": (
        _changed("record", put("attempt", to=2), lambda r: record_of(ON, 1)(r) and r["draw"] == 2), AGAIN,
        f"{HOME}/00000.jsonl.gz line 3#/attempt: is 2, planned as 1",
    ),
    "a record of the present attempt says another": (
        _changed("record", put("attempt", to=1), lambda r: record_of(ON, 2)(r) and r["draw"] == 2), AGAIN,
        f"{HOME}.attempt-2/00000.jsonl.gz line 3#/attempt: is 1, planned as 2",
    ),
    "another seed in the present attempt": (
        _changed("record", put("seed", to="7"), lambda r: record_of(ON, 2)(r) and r["draw"] == 2), AGAIN,
        f"{HOME}.attempt-2/00000.jsonl.gz line 3#/seed",
    ),
    "an earlier attempt is authenticated too": (
        _changed("record", put("draw", to=9), lambda r: record_of(ON, 1)(r) and r["draw"] == 2), AGAIN,
        f"{HOME}/00000.jsonl.gz line 3#/draw: is 9, planned as 2",
    ),
    "a leaf of another attempt": (
        change("leaf", put("attempt", to=1), lambda r: r["unit"] == "walk.probe.on" and r["leaf"] == 1,
               make=lambda **o: third_exact(upto="collected", **o)),
        (start(), fail("walk.probe.on"), *rest(),
         *(draw(f"walk.{c}.{arm}") for c in ("deep", "probe", "control") for arm in ("off", "on")), end()),
        "records/walk.probe.on.attempt-2/00000.jsonl.gz line 2#/attempt: is 1, planned as 2",
    ),
    "complete without the present attempt": (
        collected(), (start(), draw(ON, [0, 1]), fail(ON), *rest(ON), end()),
        "the collection is complete without shard 00000 of main.probe.on",
    ),
    "complete without a shard of the present attempt": (
        collected(), (start(), *rest(ON), draw(ON, [1]), fail(ON), draw(ON, [0, 2]), end()),
        "the collection is complete without shard 00001 of main.probe.on",
    ),
    "over, and in no plan": (
        collected(),
        (start(), *rest(), fail("main.probe.up", "unit-ceiling"), end(invalid=["main.probe.up"])),
        "main.probe.up is INVALID, but not in the plan",
    ),
    "failed, and in no plan": (
        collected(), (start(), *rest(), fail("main.probe.up"), end()),
        "main.probe.up is INVALID, but not in the plan",
    ),
    "fewer lines differ": (collected(), _but(differing=1), f"{LINE}#/body/differing: is 1, counted as 2"),
    "more lines differ": (collected(), _but(differing=16), f"{LINE}#/body/differing: is 16, counted as 2"),
    "none differs": (
        collected(), _but(differing=0), f"{LINE}#/body/differing: is 0, and its lines are not the stored",
    ),
    "none differs, and no file": (
        collected(), _but(differing=0, file=False),
        f"{LINE}#/body/differing: is 0, and its lines are not the stored ones",
    ),
    "one differs of the same lines": (
        collected(), _lines(lambda lines: lines, differing=1),
        f"{LINE}#/body/differing: is 1, and its lines are the stored ones",
    ),
    "another number of lines": (collected(), _but(lines=15), f"{LINE}#/body/lines: is 15, counted as 16"),
    "another number of lines, the same": (
        collected(), _lines(lambda lines: lines, lines=15), f"{LINE}#/body/lines: is 15, and of the same",
    ),
    "another size of lines, the same": (
        collected(), _lines(lambda lines: lines, lines_size=15), f"{LINE}#/body/lines_size: is 15, and",
    ),
    "another size, the same": (
        collected(), _lines(lambda lines: lines, records_size=15), f"{LINE}#/body/records_size: is 15, and",
    ),
    "another digest of its bytes": (
        collected(), _but(records_sha256="0" * 64), f"{KEPT}: its bytes are not those of {LINE} (records_sha",
    ),
    "another size of its bytes": (collected(), _but(records_size=9999), f"{KEPT}: its bytes are not those"),
    "less than its bytes": (collected(), _but(records_size=9), f"{KEPT}: larger than the 9 bytes"),
    "another digest of its lines": (
        collected(), _but(lines_sha256="0" * 64), f"{LINE}#/body/lines_sha256: is not that of the second",
    ),
    "another size of its lines": (
        collected(), _but(lines_size=16), f"{KEPT}: inflates beyond the 16 bytes of lines_size",
    ),
    "no gzip member": (collected(), _but(packed=lambda data: data), f"{KEPT}: not a plain gzip member"),
    "a gzip member with a time": (
        collected(), _but(packed=lambda data: pack(data, mtime=1)), f"{KEPT}: the gzip member's mtime is not",
    ),
    "no file": (collected(), _but(file=False), f"{KEPT}: missing"),
    "a file that differs in nothing": (
        collected(), _lines(lambda lines: lines, file=True),
        f"{KEPT}: the ledger has no `duplicate` that differs for it",
    ),
    "a file of no entry": (
        collected(), (start(), *rest(), lambda b: b.write(KEPT, b"x"), end()),
        f"{KEPT}: the ledger has no `duplicate` that differs for it",
    ),
    "a file of another number": (
        collected(), (*_COPY, lambda b: b.write(f"{HOME}/00001.duplicate-2.jsonl.gz", b"x")),
        f"{HOME}/00001.duplicate-2.jsonl.gz: the ledger has no `duplicate` that differs for it",
    ),
    "a file of another attempt": (
        collected(), (*_COPY, lambda b: b.write(f"{HOME}.attempt-2/00001.duplicate-1.jsonl.gz", b"x")),
        f"{HOME}.attempt-2/00001.duplicate-1.jsonl.gz: the ledger has no `duplicate`",
    ),
    "a shard of an attempt that never was": (
        collected(), (start(), *rest(), lambda b: b.write(f"{HOME}.attempt-2/00000.jsonl.gz", b"x"), end()),
        f"{HOME}.attempt-2/00000.jsonl.gz: the ledger stored no such shard",
    ),
    "a second result with a line less": (
        collected(), _lines(lambda lines: lines[:-1]), f"{KEPT}: has 15 records, not 16",
    ),
    "a second result of another seed": (
        collected(), _lines(_nth(lambda line: line.update(seed="7"))), f"{KEPT} line 2#/seed: is \"7\"",
    ),
    "a second result of another seal": (
        collected(), _lines(_nth(lambda line: line.update(seal="0" * 64))), f"{KEPT} line 2#/seal",
    ),
    "a second result of another attempt": (
        collected(), _lines(_nth(lambda line: line.update(attempt=2))), f"{KEPT} line 2#/attempt: is 2",
    ),
    "a second result of another shard": (
        collected(), _lines(_nth(lambda line: line.update(shard=0))), f"{KEPT} line 2#/shard: is 0",
    ),
    "a second result of another draw": (
        collected(), _lines(_nth(lambda line: line.update(draw=16))), f"{KEPT} line 2#/draw: is 16",
    ),
    "a second result of another schema": (
        collected(), _lines(_nth(lambda line: line.update(more=1))), f"{KEPT} line 2#/more: unknown property",
    ),
    "a second result of records beside": (
        collected(), _lines(_nth(lambda line: line.update(record=[]))), f"{KEPT} line 2#/record: is there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_are_not_as_section_21_says(tmp_path: Path, keys: Path, name: str) -> None:
    plan, steps, says = RECORDS[name]
    found = failed(look(build(tmp_path, keys, plan, *steps).folder))
    assert list(found) == [7], found
    assert says in found[7]


WALK = "walk.probe.on"


def _walk(change_: Callable[[list[Json]], list[Json]], **more: Any) -> tuple[Step, ...]:
    return (start(), *walks(), copy(WALK, 0, change_, **more), end())


def _swapped(lines: list[Json]) -> list[Json]:
    one, other, *more = lines
    return [other | {"leaf": 0}, one | {"leaf": 1}, *more]


def _longer(lines: list[Json]) -> list[Json]:
    """All leaves, and one more."""
    last = copying.deepcopy(lines[-1])
    last["leaf"] += 1
    last["choices"].append(0), last["p"].append(1)
    last["kinds"] += "t"
    return [*lines, last]


TREES: dict[str, tuple[tuple[Step, ...], str | None]] = {
    "a leaf more": (_walk(_longer), None),
    "a leaf more, not counted": (_walk(_longer, differing=5), "#/body/differing: is 5, counted as 1"),
    "no leaf": (_walk(lambda lines: []), "00000.duplicate-1.jsonl.gz: has no leaf"),
    "leaves out of order": (_walk(_swapped), "00000.duplicate-1.jsonl.gz line 2#/choices: out of order"),
    "leaves numbered otherwise": (
        _walk(lambda lines: lines[1:]), "00000.duplicate-1.jsonl.gz line 1#/leaf: is 1, planned as 0",
    ),
    "leaves of another attempt": (
        _walk(_nth(lambda line: line.update(attempt=2))), "00000.duplicate-1.jsonl.gz line 2#/attempt: is 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_second_trees(tmp_path: Path, keys: Path, name: str) -> None:
    steps, says = TREES[name]
    found = failed(look(build(tmp_path, keys, third_exact(upto="collected"), *steps).folder))
    assert list(found) == ([] if says is None else [7]), found
    assert says is None or says in found[7]
