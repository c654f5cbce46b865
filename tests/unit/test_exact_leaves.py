"""Leaves as lines: the schema by hand, what a worker may say, and what becomes of it."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from exact_leaves import leaves_of, tree_meta

from prereg.codec.canonical import MalformedJson
from prereg.codec.schema import schema_folder
from prereg.collect.executors.base import Finished, Job, Opening
from prereg.collect.replies import BadReply
from prereg.collect.trees import tree_of
from prereg.errors import VerificationFailed
from prereg.model.law import Decoded
from prereg.model.plan import Shard
from prereg.model.record import ShardMeta
from prereg.model.study import Unit
from prereg.seal.leaves import encode_tree, leaf_fault, read_tree
from prereg.seal.metas import check_meta
from prereg.seal.packing import BadShard, pack

SEAL = "a" * 64
SHARD = Shard(
    unit=Unit(stage="walked", configuration="other", arm="on"),
    index=0,
    first_request=0,
    requests=4,
    rows=1,
    first_seed=100,
    channel="exact",
)
VECTORS = json.loads((schema_folder() / "vectors" / "leaf.vectors.json").read_text())["vectors"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["comment"]) for v in VECTORS])
def test_the_schema_by_hand_is_the_schema(vector: dict[str, Any]) -> None:
    assert (leaf_fault(vector["value"]) is None) == vector["valid"]


def test_the_same_leaves_give_the_same_canonical_bytes() -> None:
    leaves = leaves_of(SEAL, SHARD)
    one, two = encode_tree(leaves), encode_tree(leaves)
    assert one == two
    lines = gzip.decompress(one.data).splitlines()
    assert len(lines) == 4
    for line in lines:
        value = json.loads(line)
        assert json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == line
        assert leaf_fault(value) is None


def meta(**changes: Any) -> ShardMeta:
    leaves = leaves_of(SEAL, SHARD)
    encoded = encode_tree(leaves)
    values: dict[str, Any] = {
        "study": "tree",
        "seal": SEAL,
        "unit": SHARD.unit.id,
        "shard": 0,
        "attempt": 1,
        "first_seed": "100",
        "requests": 4,
        "rows": 1,
        "draws": 4,
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "lines_sha256": encoded.lines_sha256,
        "lines_size": encoded.lines_size,
        "environment": "b" * 64,
        "network": "cut",
        "started": "2026-03-01T12:00:01.000000+00:00",
        "ended": "2026-03-01T12:00:02.000000+00:00",
        "tree": tree_meta(leaves),
    }
    return ShardMeta(**{**values, **changes})


def read(data: bytes, said: ShardMeta) -> Any:
    return read_tree(data, said, SHARD, seal=SEAL, drafter=True, where="walked.other.on/00000.jsonl.gz")


def test_a_tree_is_read_as_it_was_written() -> None:
    data = encode_tree(leaves_of(SEAL, SHARD)).data
    assert [leaf.choices for leaf in read(data, meta()).leaves] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_tree_has_as_many_lines_as_its_meta_says() -> None:
    data = encode_tree(leaves_of(SEAL, SHARD)).data
    with pytest.raises(BadShard, match="has 4 leaves; its meta says 3"):
        read(data, meta(draws=3))


def test_a_line_that_is_not_canonical_is_refused() -> None:
    lines = gzip.decompress(encode_tree(leaves_of(SEAL, SHARD)).data)
    for old, new in ((b'"leaf":0', b'"leaf": 0'), (b'"p":[0.5,0.75]', b'"p":[0.50,0.75]')):
        packed = pack(lines.replace(old, new, 1))
        changed = {
            name: getattr(packed, name)
            for name in ("records_sha256", "records_size", "lines_sha256", "lines_size")
        }
        with pytest.raises(BadShard, match="canonical") as caught:
            read(packed.data, meta(**changed))
        assert caught.value.where == "walked.other.on/00000.jsonl.gz:1"


def test_a_tree_is_in_the_meta_exactly_of_an_exact_unit() -> None:
    def checked(said: ShardMeta, shard: Shard) -> None:
        check_meta(said, shard, study="tree", seal=SEAL, environment="b" * 64, where="m")

    checked(meta(draws=9), SHARD)  # how many leaves there are is not planned
    with pytest.raises(BadShard, match="is missing, and the unit is exact"):
        checked(meta(tree=None), SHARD)
    drawn = dataclasses.replace(SHARD, channel="draws")
    checked(meta(tree=None), drawn)
    with pytest.raises(BadShard, match="is there, and the unit is draws"):
        checked(meta(), drawn)


def replies() -> list[dict[str, Any]]:
    """What a worker says of the fixture's tree, in an order of its own."""
    out = []
    for leaf in leaves_of(SEAL, SHARD):
        outcome = leaf.outcome
        assert isinstance(outcome, Decoded)
        out.append(
            {
                "choices": list(leaf.choices),
                "kinds": leaf.kinds,
                "p": list(leaf.p),
                "weight": leaf.p[0] * leaf.p[1],
                "outcome": {"tokens": list(outcome.tokens), "finish": outcome.finish},
                "counters": {
                    "proposals": leaf.counters.proposals,
                    "verifications": leaf.counters.verifications,
                    "accepted": leaf.counters.accepted,
                },
                "digest": leaf.digest,
                "closed": leaf.closed,
                "filled": leaf.filled,
            }
        )
    return out[::-1]


def end() -> dict[str, Any]:
    """The `ok` of a walk, as the harness words it."""
    good = {"checked": 4, "different": 0, "differences": [], "ok": True}
    return {
        "runs": 2,
        "unexplored": 0.0,
        "frontier": [],
        "admission": {
            "walk": {"runs": 2, "different": 0, "differences": [], "largest": 0.0, "ok": True},
            "replay": dict(good),
            "refill": {"eligible": 1, "expanded": False, **good, "checked": 2},
            "closed": {"closed": 2, "reopened": False, **good, "checked": 2},
            "randomness": {"unaccounted": 0, "ok": True},
            "interference": dict(good),
            "ok": True,
        },
    }


def taken(leaves: list[Any], tree: Any, *, drafter: bool = True) -> Any:
    opening = Opening(build="plain", configuration={"id": "other"}, model=None, prompt=None)
    job = Job(shard=SHARD, opening=opening, arm={}, walk={})
    finished = Finished(job=job, replies=leaves, tree=tree, started="", ended="")
    return tree_of(finished, seal=SEAL, drafter=drafter)


def test_a_walk_becomes_records_in_order_of_choices() -> None:
    records, meta = taken(replies(), end())
    assert records == leaves_of(SEAL, SHARD)
    whole = tree_meta(records)
    assert (meta.runs, meta.unexplored) == (whole.runs, whole.unexplored)
    assert meta.admission == whole.admission


def test_an_engine_without_seeds_is_checked_on_nothing() -> None:
    tree = end()
    tree["admission"]["interference"] = None
    _, meta = taken(replies(), tree)
    assert (meta.admission.interference.checked, meta.admission.interference.ok) == (0, True)


def test_what_differed_is_counted_whole_and_stays_for_the_analysis() -> None:
    tree = end()
    tree["admission"]["replay"] |= {"different": 24, "differences": [{"what": "x"}] * 5, "ok": False}
    _, meta = taken(replies(), tree)
    assert (meta.admission.replay.differences, meta.admission.replay.ok) == (24, False)


LEAVES: dict[str, tuple[Callable[[list[Any]], Any], str]] = {
    "no leaf": (lambda w: w.clear(), "no leaf"),
    "a path twice": (lambda w: w.append(copy.deepcopy(w[0])), "came twice"),
    "a leaf that is none": (lambda w: w.append(["leaf"]), "is none"),
    "a leaf without a digest": (lambda w: w[0].pop("digest"), "is none"),
    "a kind that nobody knows": (lambda w: w[0].update(kinds="t?"), "kinds are not letters"),
    "a probability of 0": (lambda w: w[0].update(p=[0.5, 0.0]), "p is not a list"),
    "a probability that is no number": (lambda w: w[0].update(p=[0.5, float("nan")]), "p is not a list"),
    "a value for an outcome": (lambda w: w[0].update(outcome={"value": 1}), "outcome is neither"),
    "choices that are no indices": (lambda w: w[0].update(choices=[0, -1]), "no indices"),
    "another closed than the count": (lambda w: w[0].update(closed=False), "leaves are closed"),
    "another filled than the count": (lambda w: w[3].update(filled=1), "2 leaves that were run have filled"),
}


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_that_are_no_record(name: str) -> None:
    change, what = LEAVES[name]
    leaves = replies()
    change(leaves)
    with pytest.raises(VerificationFailed, match=what):
        taken(leaves, end())


def test_counters_where_nothing_can_be_proposed() -> None:
    with pytest.raises(BadReply, match="without a drafter"):
        taken(replies(), end(), drafter=False)


CONTENTS: dict[str, tuple[dict[str, Any], str]] = {
    "lengths": ({"p": [0.5]}, "are not of one length"),
    "an acceptance of index 2": ({"choices": [0, 2], "kinds": "ta"}, "index other than 0 and 1"),
    "more accepted than proposed": (
        {"counters": {"proposals": 1, "verifications": 1, "accepted": 2}},
        "accepts more tokens",
    ),
    "text that is not NFC": ({"outcome": {"crash": "e\u0301"}}, "NFC"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_leaf_against_itself_is_never_written(name: str) -> None:
    change, what = CONTENTS[name]
    leaves = replies()
    leaves[0] |= change
    records, _ = taken(leaves, end())
    with pytest.raises((BadShard, MalformedJson), match=what):
        encode_tree(records)


ENDS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no end": (lambda t: t.clear(), "not of its form"),
    "no check of the replays": (lambda t: t["admission"].pop("replay"), "not of its form"),
    "a check that is a list": (lambda t: t["admission"].update(walk=[]), "not of its form"),
    "more than all unexplored": (lambda t: t.update(unexplored=1.5), "unexplored mass"),
    "an unexplored mass that is no number": (lambda t: t.update(unexplored=float("nan")), "unexplored mass"),
    "runs below 0": (lambda t: t.update(runs=-1), "runs of the walk is not a count"),
    "an ok against its numbers": (
        lambda t: t["admission"]["refill"].update(different=1),
        "says ok true and counts 1",
    ),
    "not ok of nothing": (
        lambda t: t["admission"]["randomness"].update(ok=False),
        "says ok false and counts 0",
    ),
    "an ok that is a number": (
        lambda t: t["admission"]["closed"].update(ok=1),
        "neither true nor false",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_ends_that_are_no_record(name: str) -> None:
    change, what = ENDS[name]
    tree = end()
    change(tree)
    with pytest.raises(BadReply, match=what):
        taken(replies(), tree)
