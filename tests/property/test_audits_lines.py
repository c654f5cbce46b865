"""The quick reading of a record's line accepts exactly what the slow reading of the formats accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from audits.fault import Fault
from audits.jsonc import canonical, parse, parse_machine
from audits.records import LineReader, Tally
from audits.schema import Schema
from audits.study import Unit

SCHEMA = Schema(parse((Path(__file__).resolve().parents[2] / "schemas/v1/record.schema.json").read_bytes()))
SEAL = "ab" * 32


def _unit(drafter: bool) -> Unit:
    return Unit(
        id="m.c.on", configuration="c", arm="on", drafter=drafter, environment="e" * 64,
        first=70, requests=3, rows=1, shard_requests=1,
    )  # fmt: skip


def _record(outcome: Any, counters: tuple[int, int, int]) -> dict[str, Any]:
    names = ("accepted", "proposals", "verifications")
    return {
        "seal": SEAL, "unit": "m.c.on", "shard": 1, "attempt": 1, "draw": 1, "seed": "71", "row": 0,
        "outcome": outcome, "counters": dict(zip(names, counters, strict=True)),
    }  # fmt: skip


def _slow(line: bytes, drafter: bool) -> bool:
    try:
        record = parse_machine(line + b"\n")
        SCHEMA.check(record)
    except Fault:
        return False
    sums = tuple(record["counters"][name] for name in ("accepted", "proposals", "verifications"))
    counted = max(sums) == sums[1] if drafter else not any(sums)
    return bool(record == _record(record["outcome"], sums) and counted)


def _quick(line: bytes, drafter: bool) -> bool:
    tally = Tally()
    try:
        LineReader(SCHEMA, SEAL).shard(_unit(drafter), 1, line + b"\n", "file", tally)
    except Fault as fault:
        assert fault.file.startswith("file")
        return False
    record = json.loads(line)
    assert tally.outcomes == {canonical(record["outcome"]): 1}
    assert tally.proposals == record["counters"]["proposals"]
    assert tally.accepted == record["counters"]["accepted"]
    return True


OUTCOMES = st.one_of(
    st.builds(
        lambda tokens, finish: {"tokens": tokens, "finish": finish},
        st.lists(st.integers(-1, 9), max_size=4),
        st.sampled_from([None, "stop", ',"draw":1,"outcome":', "\u00e9", ""]),
    ),
    st.builds(lambda name: {"crash": name}, st.text("aE\"\\}{,", max_size=5)),
    st.builds(lambda value: {"value": value}, st.sampled_from([1, 0.5, True, "1", "", None, 1e21])),
    st.just({}),
)  # fmt: skip
COUNTERS = st.tuples(st.integers(-1, 3), st.integers(0, 3), st.integers(0, 3))


@given(OUTCOMES, COUNTERS, st.booleans())
def test_well_formed_lines(outcome: Any, counters: tuple[int, int, int], drafter: bool) -> None:
    line = canonical(_record(outcome, counters))
    assert _quick(line, drafter) == _slow(line, drafter)


@settings(max_examples=400)
@given(st.data())
def test_altered_lines(data: st.DataObject) -> None:
    line = canonical(_record({"tokens": [1, 2], "finish": "stop"}, (1, 2, 1)))
    at = data.draw(st.integers(0, len(line)))
    cut = data.draw(st.integers(0, 3))
    new = data.draw(st.sampled_from([b"", b" ", b"0", b"1", b",", b'"', b"}", b"\\u0041", b"a", b'"x":1,']))
    line = line[:at] + new + line[at + cut :]
    if b"\n" not in line and line:
        assert _quick(line, True) == _slow(line, True)
