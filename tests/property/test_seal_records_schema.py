"""The hand check of records against the published schema, on values of every kind."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prereg.codec.canonical import MalformedJson, dumps, loads
from prereg.codec.schema import SchemaViolation, validate
from prereg.model.law import Crashed, Decoded, Outcome, Valued
from prereg.model.plan import Shard
from prereg.model.record import Counters, Record, ShardMeta
from prereg.model.study import Unit
from prereg.seal.records import encode_shard, read_shard, record_fault

SAFE = 2**53 - 1
counts = st.integers(0, SAFE)
text = st.text(st.characters(exclude_categories=("Cs",)), max_size=30).map(
    lambda s: unicodedata.normalize("NFC", s)
)
edges = ["", "x" * 200, "x" * 201, "x" * 2001, "a" * 64, "main.c.on", "7", "07", "-1"]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(SAFE),
    st.floats(allow_nan=False, allow_infinity=False),
    text,
    st.sampled_from(edges),
)
junk = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["a", "tokens", "value"]), v)
)
good_outcomes = st.one_of(
    st.fixed_dictionaries({"tokens": st.lists(counts, max_size=4), "finish": st.none() | text}),
    st.fixed_dictionaries({"crash": text.filter(bool)}),
    st.fixed_dictionaries({"value": st.booleans() | st.integers(-SAFE, SAFE) | st.floats(-1e9, 1e9) | text}),
)
outcomes = good_outcomes | st.dictionaries(
    st.sampled_from(["tokens", "finish", "crash", "value", "more"]), junk, max_size=3
)
values = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["-inf", "inf", "nan"])
entries = st.fixed_dictionaries(
    {"tokens": st.lists(counts, max_size=3), "values": st.lists(values, max_size=3)}
)
beside = st.lists(entries, max_size=2)
worse_beside = st.one_of(
    junk,
    st.lists(
        st.dictionaries(st.sampled_from(["tokens", "values", "more"]), st.lists(values | scalars) | junk),
        max_size=2,
    ),
)
good_records = st.fixed_dictionaries(
    {
        "seal": st.just("a" * 64),
        "unit": st.just("main.c.on"),
        "shard": counts,
        "attempt": st.integers(1, 9),
        "draw": counts,
        "seed": st.integers(0, 2**64 - 1).map(str),
        "row": counts,
        "outcome": good_outcomes,
        "counters": st.fixed_dictionaries({"proposals": counts, "verifications": counts, "accepted": counts}),
    }
)


EDGES: list[dict[str, Any]] = [
    *({"crash": "x" * n} for n in (0, 1, 200, 201)),
    *({"tokens": [], "finish": "x" * n} for n in (0, 200, 201)),
    *({"value": "x" * n} for n in (0, 2000, 2001)),
    *({"tokens": [token], "finish": None} for token in (0, -1, True, 1.5, "1", None, SAFE)),
    *({"value": value} for value in (None, [], {}, True, 1.5, SAFE)),
    *({"tokens": [0] * n, "finish": None} for n in (100_000, 100_001)),
]
edge_outcomes = st.sampled_from(EDGES)
CHANGES = [
    "none",
    "beside",
    "worse beside",
    "outcome",
    "edge outcome",
    "edge count",
    "replace",
    "counter",
    "drop",
    "add",
    "junk",
]
edge_counts = st.sampled_from([0, -1, True, False, 1.5, "0", None, SAFE])


@st.composite
def records(draw: st.DrawFn) -> Any:
    """A sound record, or one with a field replaced, removed or added."""
    value = draw(good_records)
    change = draw(st.sampled_from(CHANGES))
    if change == "edge outcome":
        value["outcome"] = draw(edge_outcomes)
    elif change == "edge count":
        field = draw(st.sampled_from(["shard", "attempt", "draw", "row", "proposals", "accepted"]))
        place = value if field in value else value["counters"]
        place[field] = draw(edge_counts)
    elif change.endswith("beside"):
        value["record"] = draw(beside if change == "beside" else worse_beside)
    elif change == "outcome":
        value["outcome"] = draw(outcomes)
    elif change == "replace":
        value[draw(st.sampled_from(sorted(value)))] = draw(junk)
    elif change == "counter":
        value["counters"][draw(st.sampled_from(["proposals", "accepted", "more"]))] = draw(junk)
    elif change == "drop":
        del value[draw(st.sampled_from(sorted(value)))]
    elif change == "add":
        value["more"] = draw(junk)
    elif change == "junk":
        return draw(junk)
    return value


def agree(parsed: Any) -> None:
    try:
        validate(parsed, "record", where="x")
        by_schema = True
    except SchemaViolation:
        by_schema = False
    assert (record_fault(parsed) is None) == by_schema


@given(records())
def test_the_hand_check_and_the_schema_say_the_same(value: Any) -> None:
    try:
        parsed = loads(json.dumps(value).encode(), where="x")
    except MalformedJson:
        return  # the parser refuses it before either check sees it
    agree(parsed)


@pytest.mark.parametrize("i", range(len(EDGES)))
def test_the_edges_of_outcomes(i: int) -> None:
    counters = {"proposals": 0, "verifications": 0, "accepted": 0}
    agree(
        {
            **{
                "seal": "a" * 64,
                "unit": "main.c.on",
                "shard": 0,
                "attempt": 1,
                "draw": 0,
                "seed": "0",
                "row": 0,
            },
            **{"outcome": EDGES[i], "counters": counters},
        }
    )


def outcome_of(value: dict[str, Any]) -> Outcome:
    if "tokens" in value:
        return Decoded(tokens=tuple(value["tokens"]), finish=value["finish"])
    return Crashed(crash=value["crash"]) if "crash" in value else Valued(value=value["value"])


good_counters = st.tuples(counts, counts, counts).map(lambda n: (min(n[0], n[2]), min(n[1], n[2]), n[2]))
"""Verifications and accepted, neither above the proposals, which come last."""


@given(
    st.lists(st.tuples(good_outcomes, good_counters), min_size=1, max_size=8),
    st.integers(0, 2**63),
)
def test_what_is_written_is_read_back(
    draws: list[tuple[dict[str, Any], tuple[int, int, int]]], seed: int
) -> None:
    unit = Unit(stage="main", configuration="c", arm="on")
    shard = Shard(unit=unit, index=0, first_request=0, requests=len(draws), rows=1, first_seed=seed)
    found = [
        Record(
            seal="a" * 64,
            unit=unit.id,
            shard=0,
            attempt=1,
            draw=i,
            seed=str(seed + i),
            row=0,
            outcome=outcome_of(loads(dumps(value), where="x")),  # type: ignore[arg-type]
            counters=Counters(proposals=p, verifications=v, accepted=a),
        )
        for i, (value, (v, a, p)) in enumerate(draws)
    ]
    encoded = encode_shard(found)
    meta = ShardMeta(
        study="s",
        seal="a" * 64,
        unit=unit.id,
        shard=0,
        attempt=1,
        first_seed=str(seed),
        requests=len(draws),
        rows=1,
        draws=len(draws),
        records_sha256=encoded.records_sha256,
        records_size=encoded.records_size,
        lines_sha256=encoded.lines_sha256,
        lines_size=encoded.lines_size,
        environment="e" * 64,
        network="cut",
        started="2026-03-01T12:00:00+00:00",
        ended="2026-03-01T12:00:00+00:00",
    )
    assert read_shard(encoded.data, meta, shard, seal="a" * 64, drafter=True, where="x/y") == found
