"""The quick reading of a leaf line accepts exactly what the slow reading of the formats accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from audits.fault import Fault
from audits.jsonc import canonical, parse, parse_machine
from audits.leaves import LeafReader
from audits.records import LineReader
from audits.schema import Schema
from audits.study import Unit

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "v1"
RECORD, LEAF = (Schema(parse((FOLDER / f"{name}.schema.json").read_bytes())) for name in ("record", "leaf"))
SEAL = "ab" * 32
UNIT = Unit(
    id="x.c.on", configuration="c", arm="on", drafter=True, environment="e" * 64, first=70, requests=4,
    rows=1, shard_requests=4, exact=True,
)  # fmt: skip
ZERO = {"differences": 0, "ok": True}


def _line(
    choices: list[int], kinds: str, p: list[Any], outcome: Any, closed: bool, filled: int
) -> dict[str, Any]:
    return {
        "seal": SEAL, "unit": "x.c.on", "shard": 0, "attempt": 1, "leaf": 0, "choices": choices,
        "kinds": kinds, "p": p, "outcome": outcome, "digest": "0f" * 20, "closed": closed,
        "filled": filled,
        "counters": {"proposals": 3, "verifications": 1, "accepted": 2},
    }  # fmt: skip


def _slow(line: bytes) -> bool:
    try:
        value = parse_machine(line + b"\n")
        LEAF.check(value)
    except Fault:
        return False
    told = {key: value[key] for key in ("seal", "unit", "shard", "attempt", "leaf")}
    if told != {"seal": SEAL, "unit": "x.c.on", "shard": 0, "attempt": 1, "leaf": 0}:
        return False
    if not len(value["choices"]) == len(value["kinds"]) == len(value["p"]):
        return False
    accepted = zip(value["kinds"], value["choices"], strict=True)
    counters = value["counters"]
    counted = max(counters.values()) == counters["proposals"]
    return counted and all(kind != "a" or index < 2 for kind, index in accepted)


def _quick(line: bytes) -> bool:
    told = json.loads(line) if _slow(line) else {}
    closed = told.get("closed") is True
    admission = dict.fromkeys(("walk", "replay", "interference"), ZERO)
    admission |= {"refill": ZERO | {"eligible": int(not closed and told.get("filled", 0) > 0)}}
    admission |= {"randomness": {"unaccounted": 0, "ok": True}}
    admission |= {"closed": ZERO | {"closed": int(closed), "reopened": False}}
    meta = {"draws": 1, "tree": {"admission": admission}}
    try:
        reader = LeafReader(LEAF, SEAL, LineReader(RECORD, SEAL).part)
        tree = reader.tree(UNIT, line + b"\n", meta, ("file", "meta"))
    except Fault as fault:
        assert fault.file.startswith("file")
        return False
    value = json.loads(line)
    (leaf,) = tree.leaves
    assert (leaf.choices, leaf.kinds, leaf.p) == (value["choices"], value["kinds"], value["p"])
    assert (leaf.outcome, leaf.closed) == (canonical(value["outcome"]), value["closed"])
    assert leaf.filled == value["filled"]
    return True


OUTCOMES = st.one_of(
    st.builds(
        lambda tokens, finish: {"tokens": tokens, "finish": finish},
        st.lists(st.integers(-1, 9), max_size=4),
        st.sampled_from([None, "stop", '},"p":[1],"seal":', "\u00e9", ""]),
    ),
    st.builds(lambda name: {"crash": name}, st.text("aE\"\\}{,[]", max_size=5)),
    st.sampled_from([{"value": 1}, {}, {"crash": "x", "value": 1}]),
)  # fmt: skip
P = st.one_of(
    st.floats(0, 1), st.sampled_from([1, 0, 1e-7, 1e-9, 5e-324, 0.1, 1.5, -0.25, "1", None])
)  # fmt: skip


@given(st.data())
def test_well_formed_lines(data: st.DataObject) -> None:
    length = data.draw(st.integers(0, 4))
    choices = data.draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    kinds = data.draw(st.text("tdarb", min_size=length, max_size=length + 1))
    p = data.draw(st.lists(P, min_size=length, max_size=length))
    filled = data.draw(st.sampled_from([0, 1, 12, -1]))
    line = canonical(_line(choices, kinds, p, data.draw(OUTCOMES), data.draw(st.booleans()), filled))
    assert _quick(line) == _slow(line)


@settings(max_examples=400)
@given(
    st.integers(0, 520), st.integers(0, 3),
    st.sampled_from([b"", b" ", b"0", b"1", b",", b'"', b"}", b"]", b"\\u0041", b"a", b'"x":1,', b"e-5",
                     b".0"]),
)  # fmt: skip
@example(at=0, cut=0, new=b"")
def test_altered_lines(at: int, cut: int, new: bytes) -> None:
    line = canonical(_line([1, 0, 2], "dat", [0.5, 1, 2 / 3], {"tokens": [1, 2], "finish": "stop"}, False, 3))
    line = line[:at] + new + line[at + cut :]
    assert _quick(line) == _slow(line)
