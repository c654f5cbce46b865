"""The leaves of a tree of choices: authenticated from bytes, and written as bytes (docs/formats.md, 14).

A tree has some ten thousand leaves at most, so each line is parsed and checked field by field. Whether the
leaves are a tree, and what their laws say, is for the analysis to judge: here each line is of its form, bound
to its place in the plan, and in order, and the meta does not contradict its own numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prereg.codec.canonical import MalformedJson, dumps, loads_machine
from prereg.codec.convert import outcome_from, to_json
from prereg.model.plan import Shard
from prereg.model.record import Counters, LeafRecord, ShardMeta
from prereg.model.tree import TreeLeaf, TreeMeta, UnitTree
from prereg.seal.packing import BadShard, Encoded, pack, unpack
from prereg.seal.records import counters_fault, is_attempt, is_count, outcome_fault

KINDS = "tdarb"
"""Token, drafter's token, acceptance, residual, bonus."""
MAX_CHOICES = 100_000
_HEX = re.compile(r"[0-9a-f]{64}")
_STATE = re.compile(r"[0-9a-f]{32,64}")
_UNIT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}")
_FIELDS = {
    *("seal", "unit", "shard", "attempt", "leaf", "choices", "kinds", "p", "outcome"),
    *("counters", "digest", "closed", "filled"),
}
_COUNTERS = {"accepted", "proposals", "verifications"}


def encode_tree(leaves: Iterable[LeafRecord]) -> Encoded:
    """Serialise leaves, which are in order, as the one shard of their unit.

    The same leaves give the same bytes. Raises BadShard for a leaf that is not of its form.
    """
    lines = []
    for leaf in leaves:
        value = to_json(leaf)
        where = f"{leaf.unit}/{leaf.shard:05d} leaf {leaf.leaf}"
        fault = leaf_fault(value) or contents_fault(leaf)
        if fault:
            raise BadShard(fault, where=where)
        line = dumps(value) + b"\n"
        # Parsing it back keeps out what a reader would refuse: numbers past 2^53, strings that are not NFC.
        loads_machine(line, where=where)
        lines.append(line)
    return pack(b"".join(lines))


def read_tree(
    gz: bytes, meta: ShardMeta, shard: Shard, *, seal: str, drafter: bool, where: str, attempt: int = 1
) -> UnitTree:
    """The tree of one exact unit in one attempt, each leaf authenticated against the plan.

    `meta` must have passed `check_meta`; `drafter` says whether the unit's counters may be above 0. Raises
    BadShard, with the line and the field, for the first fault.
    """
    if meta.tree is None:
        raise BadShard("an exact unit's meta has a tree", where=where)
    lines = unpack(gz, meta, where).splitlines(keepends=True)
    if len(lines) != meta.draws:
        raise BadShard(f"has {len(lines)} leaves; its meta says {meta.draws}", where=where)
    found = read_leaves(lines, shard, seal=seal, drafter=drafter, where=where, attempt=attempt)
    check_tree_meta(meta.tree, found, where=where)
    return UnitTree(leaves=tuple(found), meta=meta.tree)


def read_leaves(
    lines: Sequence[bytes], shard: Shard, *, seal: str, drafter: bool, where: str, attempt: int = 1
) -> list[TreeLeaf]:
    """The leaves of these lines, newlines included, as `read_tree` reads them but for what a meta says."""
    name = "/".join(where.split("/")[-2:])
    found: list[TreeLeaf] = []
    for number, line in enumerate(lines):
        at = f"{name}:{number + 1}"
        leaf = _leaf(line, shard, seal, attempt, number, at)
        if found and not found[-1].choices < leaf.choices:
            raise BadShard("does not follow the line before it in order of choices", where=f"{at}#/choices")
        if not drafter and (leaf.proposals or leaf.verifications or leaf.accepted):
            raise BadShard("counts proposals in an arm without a drafter", where=f"{at}#/counters")
        found.append(leaf)
    return found


def check_tree_meta(tree: TreeMeta, leaves: Sequence[TreeLeaf | LeafRecord], *, where: str) -> None:
    """Raise BadShard if a tree's `ok`s contradict its numbers, or its leaves what could have been checked."""
    closed = sum(leaf.closed for leaf in leaves)
    filled = sum(leaf.filled > 0 and not leaf.closed for leaf in leaves)
    checks = tree.admission
    expected = {
        "walk": (checks.walk.ok, checks.walk.differences == 0),
        "replay": (checks.replay.ok, checks.replay.differences == 0),
        "refill": (checks.refill.ok, checks.refill.differences == 0),
        "closed": (checks.closed.ok, checks.closed.differences == 0),
        "randomness": (checks.randomness.ok, checks.randomness.unaccounted == 0),
        "interference": (checks.interference.ok, checks.interference.differences == 0),
    }
    for name, (ok, wanted) in expected.items():
        if ok != wanted:
            raise BadShard(
                f"its ok is {str(ok).lower()}, against its own numbers",
                where=f"{where}#/tree/admission/{name}/ok",
            )
    if checks.closed.closed != closed:
        raise BadShard(
            f"{closed} leaves are closed, not {checks.closed.closed}",
            where=f"{where}#/tree/admission/closed/closed",
        )
    if checks.refill.eligible != filled:
        raise BadShard(
            f"{filled} leaves that were run have filled rows, not {checks.refill.eligible}",
            where=f"{where}#/tree/admission/refill/eligible",
        )
    if checks.closed.reopened and closed:
        raise BadShard("leaves are closed all the same", where=f"{where}#/tree/admission/closed/reopened")


def leaf_fault(value: object) -> str | None:
    """What the leaf schema has against a parsed value, or None: schemas/v1/leaf.schema.json by hand."""
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return f"is no object with exactly the fields {', '.join(sorted(_FIELDS))}"
    for field, pattern in (("seal", _HEX), ("unit", _UNIT), ("digest", _STATE)):
        text = value[field]
        if not isinstance(text, str) or not pattern.fullmatch(text):
            return f"{field} is not of its form"
    for field in ("shard", "leaf", "filled"):
        if not is_count(value[field]):
            return f"{field} is not a count"
    if not is_attempt(value["attempt"]):
        return "attempt is not one of 1 to 9"
    if not isinstance(value["closed"], bool):
        return "closed is neither true nor false"
    return _path_fault(value) or _counts_fault(value["counters"]) or _outcome_fault(value["outcome"])


def _path_fault(value: Mapping[str, Any]) -> str | None:
    choices, kinds, p = value["choices"], value["kinds"], value["p"]
    if not isinstance(choices, list) or len(choices) > MAX_CHOICES or not all(map(is_count, choices)):
        return f"choices are not a list of at most {MAX_CHOICES} indices"
    if not isinstance(kinds, str) or len(kinds) > MAX_CHOICES or not set(kinds) <= set(KINDS):
        return f"kinds are not letters of {KINDS}"
    if not isinstance(p, list) or len(p) > MAX_CHOICES or not all(map(_is_probability, p)):
        return "p is not a list of numbers above 0 and up to 1"
    return None


def _counts_fault(counters: object) -> str | None:
    if not isinstance(counters, dict) or counters.keys() != _COUNTERS:
        return "counters are not accepted, proposals and verifications"
    return None if all(map(is_count, counters.values())) else "a counter is not a count"


def _outcome_fault(outcome: object) -> str | None:
    if isinstance(outcome, dict) and outcome.keys() == {"value"}:
        return "outcome is neither tokens with finish nor a crash"
    return outcome_fault(outcome)


def contents_fault(leaf: LeafRecord) -> str | None:
    """What the fields of a well-formed leaf have against each other, or None."""
    return _lengths_fault(leaf.choices, leaf.kinds, leaf.p) or counters_fault(leaf.counters)


def _lengths_fault(choices: Sequence[int], kinds: str, p: Sequence[float]) -> str | None:
    if not len(choices) == len(kinds) == len(p):
        return f"{len(choices)} choices, {len(kinds)} kinds and {len(p)} probabilities are not of one length"
    if any(kind == "a" and index > 1 for kind, index in zip(kinds, choices, strict=True)):
        return "an acceptance has an index other than 0 and 1"
    return None


def _leaf(line: bytes, shard: Shard, seal: str, attempt: int, number: int, where: str) -> TreeLeaf:
    try:
        value = loads_machine(line, where=where)
    except MalformedJson as error:
        raise BadShard(error.what, where=where) from None
    if fault := leaf_fault(value):
        raise BadShard(fault, where=where)
    assert isinstance(value, dict)
    expected = {
        "seal": seal,
        "unit": shard.unit.id,
        "shard": shard.index,
        "attempt": attempt,
        "leaf": number,
    }
    for field, wanted in expected.items():
        if value[field] != wanted:
            raise BadShard(
                f"is {value[field]!r:.80}; the plan says {wanted!r:.80}", where=f"{where}#/{field}"
            )
    made: dict[str, Any] = value
    if fault := _lengths_fault(made["choices"], made["kinds"], made["p"]):
        raise BadShard(fault, where=where)
    counters = Counters(**made["counters"])
    if fault := counters_fault(counters):
        raise BadShard(fault, where=f"{where}#/counters")
    return TreeLeaf(
        choices=tuple(made["choices"]),
        p=tuple(float(x) for x in made["p"]),
        outcome=outcome_from(made["outcome"]),
        proposals=counters.proposals,
        accepted=counters.accepted,
        verifications=counters.verifications,
        kinds=made["kinds"],
        digest=made["digest"],
        closed=made["closed"],
        filled=made["filled"],
    )


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
