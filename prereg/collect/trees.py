"""A worker's leaves and its word on their tree, checked into records (docs/formats.md section 14).

Only what the record must have is taken. Whether the leaves are a tree and whether its checks admit it is for
the analysis to judge, from the very same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prereg.codec.convert import outcome_from, to_json
from prereg.collect.executors.base import Finished
from prereg.collect.replies import BadReply
from prereg.model.record import Counters, LeafRecord
from prereg.model.tree import (
    ClosedCheck,
    PathCheck,
    RandomnessCheck,
    RefillCheck,
    TreeAdmission,
    TreeLeaf,
    TreeMeta,
    WalkCheck,
)
from prereg.seal.leaves import check_tree_meta, leaf_fault
from prereg.seal.records import is_count

_GIVEN = {"choices", "kinds", "p", "outcome", "counters", "digest", "closed", "filled"}


def tree_of(finished: Finished, *, seal: str, drafter: bool) -> tuple[list[LeafRecord], TreeMeta]:
    """The leaf records of a unit in order of choices, and `tree` of its meta.

    Raises BadReply or BadShard if a leaf or the end of the walk is not of its form, if a path came twice, or
    if the checks contradict their own numbers; `drafter` says whether counters may be above 0.
    """
    shard, attempt = finished.job.shard, finished.job.attempt
    if not finished.replies:
        raise BadReply("the walk returned no leaf")
    values = sorted((_checked(leaf) for leaf in finished.replies), key=lambda value: value["choices"])
    records: list[LeafRecord] = []
    for number, value in enumerate(values):
        place = {"unit": shard.unit.id, "shard": shard.index, "attempt": attempt}
        bound = {"seal": seal, **place, "leaf": number}
        if fault := leaf_fault({**bound, **value}):
            raise BadReply(f"a leaf of the tree: {fault}")
        counters = Counters(**value["counters"])
        if not drafter and (counters.proposals or counters.verifications or counters.accepted):
            raise BadReply("a leaf counts proposals in an arm without a drafter")
        record = LeafRecord(
            seal=seal,
            unit=shard.unit.id,
            shard=shard.index,
            attempt=attempt,
            leaf=number,
            choices=tuple(value["choices"]),
            kinds=value["kinds"],
            p=tuple(float(p) for p in value["p"]),
            outcome=outcome_from(value["outcome"]),
            counters=counters,
            digest=value["digest"],
            closed=value["closed"],
            filled=value["filled"],
        )
        if records and records[-1].choices == record.choices:
            raise BadReply(f"the path {list(record.choices)!r:.80} came twice")
        records.append(record)
    meta = tree_meta(finished.tree)
    check_tree_meta(meta, records, where=shard.unit.id)
    return records, meta


def leaf_line(leaf: TreeLeaf) -> dict[str, Any]:
    """A leaf as a worker would send it: a tree walked in parts passes the same checks as a whole one."""
    return {
        "choices": list(leaf.choices),
        "kinds": leaf.kinds,
        "p": list(leaf.p),
        "outcome": to_json(leaf.outcome),
        "counters": {
            "proposals": leaf.proposals,
            "verifications": leaf.verifications,
            "accepted": leaf.accepted,
        },
        "digest": leaf.digest,
        "closed": leaf.closed,
        "filled": leaf.filled,
    }


def _checked(leaf: Any) -> dict[str, Any]:
    if not isinstance(leaf, dict) or not leaf.keys() >= _GIVEN:
        raise BadReply("what came as a leaf is none")
    if not isinstance(leaf["choices"], list) or not all(map(is_count, leaf["choices"])):
        raise BadReply("the choices of a leaf are no indices")
    return {name: leaf[name] for name in _GIVEN}


def tree_meta(end: Any) -> TreeMeta:
    """`tree` of a meta from the raw end of a walk. Raises BadReply for what is none."""
    try:
        checks = end["admission"]
        walk, replay, refill = checks["walk"], checks["replay"], checks["refill"]
        closed, randomness, between = checks["closed"], checks["randomness"], checks["interference"]
        unaccounted = _count(randomness, "unaccounted")
        meta = TreeMeta(
            runs=_count(end, "runs"),
            unexplored=_share(end["unexplored"]),
            admission=TreeAdmission(
                walk=WalkCheck(differences=_different(walk), ok=_ok(walk, _different(walk))),
                replay=_paths(replay),
                refill=RefillCheck(
                    eligible=_count(refill, "eligible"),
                    checked=_count(refill, "checked"),
                    differences=_different(refill),
                    expanded=_flag(refill, "expanded"),
                    ok=_ok(refill, _different(refill)),
                ),
                closed=ClosedCheck(
                    closed=_count(closed, "closed"),
                    checked=_count(closed, "checked"),
                    differences=_different(closed),
                    reopened=_flag(closed, "reopened"),
                    ok=_ok(closed, _different(closed)),
                ),
                randomness=RandomnessCheck(unaccounted=unaccounted, ok=_ok(randomness, unaccounted)),
                # An engine that cannot be run from a seed is checked on nothing, which admits nothing.
                interference=(
                    PathCheck(checked=0, differences=0, ok=True) if between is None else _paths(between)
                ),
            ),
        )
    except (KeyError, TypeError, AttributeError):
        raise BadReply("the end of the walk is not of its form") from None
    return meta


def _paths(check: Mapping[str, Any]) -> PathCheck:
    different = _different(check)
    checked = _count(check, "checked")
    # A check of nothing is not `ok` for the engine side; in a record `checked` says so by itself.
    ok = True if checked == 0 and different == 0 else _ok(check, different)
    return PathCheck(checked=checked, differences=different, ok=ok)


def _different(check: Mapping[str, Any]) -> int:
    return _count(check, "different")


def _count(check: Mapping[str, Any], name: str) -> int:
    value = check[name]
    if not is_count(value):
        raise BadReply(f"{name} of the walk is not a count")
    return int(value)


def _flag(check: Mapping[str, Any], name: str) -> bool:
    value = check[name]
    if not isinstance(value, bool):
        raise BadReply(f"{name} of the walk is neither true nor false")
    return value


def _ok(check: Mapping[str, Any], different: int) -> bool:
    """The engine side's word, which must be what its own numbers say."""
    ok = _flag(check, "ok")
    if ok != (different == 0):
        raise BadReply(f"a check of the walk says ok {str(ok).lower()} and counts {different}")
    return ok


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e-9 <= value <= 1 + 1e-9:
        raise BadReply("the unexplored mass is none")
    return min(1.0, max(0.0, float(value)))
