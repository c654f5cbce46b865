"""The hand check of leaves against the published schema, and that leaves come back as they were written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from test_seal_records_schema import EDGES, counts, edge_counts, junk, outcomes, text

from prereg.codec.canonical import MalformedJson, dumps, loads
from prereg.codec.convert import outcome_from
from prereg.codec.schema import SchemaViolation, validate
from prereg.model.plan import Shard
from prereg.model.record import Counters, LeafRecord, ShardMeta
from prereg.model.study import Unit
from prereg.model.tree import (
    ClosedCheck,
    PathCheck,
    RandomnessCheck,
    RefillCheck,
    TreeAdmission,
    TreeMeta,
    WalkCheck,
)
from prereg.seal.leaves import encode_tree, leaf_fault, read_tree

probabilities = st.floats(0, 1, exclude_min=True)
engine_outcomes = st.one_of(
    st.fixed_dictionaries({"tokens": st.lists(counts, max_size=4), "finish": st.none() | text}),
    st.fixed_dictionaries({"crash": text.filter(bool)}),
)
paths = st.lists(st.tuples(st.integers(0, 1), st.sampled_from("tdarb"), probabilities), max_size=5)


@st.composite
def good_leaves(draw: st.DrawFn) -> dict[str, Any]:
    path = draw(paths)
    proposals = draw(st.integers(0, 9))
    return {
        "seal": "a" * 64,
        "unit": "walked.c.on",
        "shard": 0,
        "attempt": 1,
        "leaf": draw(counts),
        "choices": [index for index, _, _ in path],
        "kinds": "".join(kind for _, kind, _ in path),
        "p": [p for _, _, p in path],
        "outcome": draw(engine_outcomes),
        "counters": {
            "proposals": proposals,
            "verifications": draw(st.integers(0, proposals)),
            "accepted": draw(st.integers(0, proposals)),
        },
        "digest": draw(st.integers(32, 64)) * "b",
        "closed": draw(st.booleans()),
        "filled": draw(counts),
    }


PARTS = {
    "choices": st.lists(edge_counts, max_size=2) | st.just([0] * 100_001),
    "p": st.lists(st.sampled_from([0, 0.0, -0.5, 1, 1.0, 1.5, True, None, "1", 1e-300]), max_size=2),
    "kinds": st.sampled_from(["", "t\n", "?", "T", "tdarb", "t" * 100_001, None]),
    "digest": st.sampled_from(["b" * n for n in (31, 32, 64, 65)] + ["B" * 32, "b" * 32 + "\n", None]),
    "closed": st.sampled_from([0, 1, None, "true"]),
    "outcome": outcomes | st.sampled_from(EDGES),
    "leaf": edge_counts,
    "filled": edge_counts,
    "attempt": edge_counts,
    "counters": st.dictionaries(
        st.sampled_from(["proposals", "verifications", "accepted", "more"]), edge_counts
    ),
}


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    """A sound leaf, or one with a field replaced, removed or added."""
    value = draw(good_leaves())
    change = draw(st.sampled_from(["none", "part", "junk in a part", "drop", "add", "junk"]))
    if change == "part":
        field = draw(st.sampled_from(sorted(PARTS)))
        value[field] = draw(PARTS[field])
    elif change == "junk in a part":
        value[draw(st.sampled_from(sorted(value)))] = draw(junk)
    elif change == "drop":
        del value[draw(st.sampled_from(sorted(value)))]
    elif change == "add":
        value["more"] = draw(junk)
    elif change == "junk":
        return draw(junk)
    return value


@settings(deadline=None)
@given(leaves())
def test_the_hand_check_and_the_schema_say_the_same(value: Any) -> None:
    try:
        parsed = loads(json.dumps(value).encode(), where="x")
    except MalformedJson:
        return
    try:
        validate(parsed, "leaf", where="x")
        by_schema = True
    except SchemaViolation:
        by_schema = False
    assert (leaf_fault(parsed) is None) == by_schema


SHARD = Shard(
    unit=Unit(stage="walked", configuration="c", arm="on"),
    index=0,
    first_request=0,
    requests=4,
    rows=1,
    first_seed=7,
    channel="exact",
)


@settings(max_examples=50, deadline=None)
@given(st.lists(good_leaves(), max_size=6, unique_by=lambda leaf: tuple(leaf["choices"])))
def test_what_is_written_comes_back(values: list[dict[str, Any]]) -> None:
    values.sort(key=lambda leaf: leaf["choices"])
    records = [
        LeafRecord(
            **{
                **value,
                "leaf": number,
                "choices": tuple(value["choices"]),
                "p": tuple(value["p"]),
                "outcome": outcome_from(value["outcome"]),
                "counters": Counters(**value["counters"]),
            }
        )
        for number, value in enumerate(values)
    ]
    encoded = encode_tree(records)
    closed = sum(record.closed for record in records)
    eligible = sum(record.filled > 0 and not record.closed for record in records)
    meta = ShardMeta(
        study="s",
        seal="a" * 64,
        unit=SHARD.unit.id,
        shard=0,
        attempt=1,
        first_seed="7",
        requests=4,
        rows=1,
        draws=len(records),
        records_sha256=encoded.records_sha256,
        records_size=encoded.records_size,
        lines_sha256=encoded.lines_sha256,
        lines_size=encoded.lines_size,
        environment="b" * 64,
        network="cut",
        started="2026-03-01T12:00:01.000000+00:00",
        ended="2026-03-01T12:00:02.000000+00:00",
        tree=TreeMeta(
            runs=1,
            unexplored=0.0,
            admission=TreeAdmission(
                walk=WalkCheck(differences=0, ok=True),
                replay=PathCheck(checked=1, differences=0, ok=True),
                refill=RefillCheck(eligible=eligible, checked=0, differences=0, expanded=False, ok=True),
                closed=ClosedCheck(closed=closed, checked=0, differences=0, reopened=False, ok=True),
                randomness=RandomnessCheck(unaccounted=0, ok=True),
                interference=PathCheck(checked=4, differences=0, ok=True),
            ),
        ),
    )
    found = read_tree(encoded.data, meta, SHARD, seal="a" * 64, drafter=True, where="u/00000.jsonl.gz")
    assert dumps([list(leaf.p) for leaf in found.leaves]) == dumps([list(r.p) for r in records])
    for leaf, record in zip(found.leaves, records, strict=True):
        assert (leaf.choices, leaf.kinds, leaf.p) == (record.choices, record.kinds, record.p)
        assert (leaf.outcome, leaf.digest, leaf.closed) == (record.outcome, record.digest, record.closed)
        assert leaf.filled == record.filled
        assert (leaf.proposals, leaf.verifications, leaf.accepted) == (
            record.counters.proposals,
            record.counters.verifications,
            record.counters.accepted,
        )
