"""Section 14: whether the leaves of an arm are a tree, and the law they are the leaves of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from audits.law import Law
from audits.leaves import Leaf, Tree

CLOSE = 1e-9
"""How far sums of probabilities may be from 1, and the most mass that counts as nothing unexplored."""


def clip(value: float, low: float = 0.0) -> float:
    """A mass as it is written: rounding, or leaves that are no tree, may take a sum beyond 1."""
    return min(1.0, max(low, value))


def _shared(a: list[int], b: list[int]) -> int:
    """How many choices two leaves have in common from the root."""
    for i, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return i
    return min(len(a), len(b))


def _sums_to_one(children: list[float], whole: bool) -> bool:
    total = math.fsum(children)
    return total <= 1.0 + CLOSE and (not whole or total >= 1.0 - CLOSE)


def is_tree(tree: Tree) -> bool:
    """Whether the leaves, which are in order of their choices, are a tree.

    Leaves with a common beginning stand together, so it is enough to compare each with the one before it:
    what holds of all neighbours holds of every two.
    """
    unexplored = float(tree.meta["unexplored"])
    if not tree.leaves:
        return False
    if abs(math.fsum([*(leaf.weight for leaf in tree.leaves), unexplored]) - 1.0) > CLOSE:
        return False
    whole = unexplored == 0.0
    before: Leaf | None = None
    open_nodes: list[list[float]] = []
    """The probabilities of the known children of each node on the way to the present leaf."""
    for leaf in tree.leaves:
        depth = 0
        if before is not None:
            depth = _shared(before.choices, leaf.choices)
            if depth == min(len(before.choices), len(leaf.choices)):
                return False
            if before.p[:depth] != leaf.p[:depth] or before.kinds[: depth + 1] != leaf.kinds[: depth + 1]:
                return False
        while len(open_nodes) > depth + 1:
            if not _sums_to_one(open_nodes.pop(), whole):
                return False
        if before is not None:
            open_nodes[depth].append(leaf.p[depth])
        open_nodes += [[p] for p in leaf.p[len(open_nodes) :]]
        before = leaf
    return all(_sums_to_one(children, whole) for children in open_nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """The law of one arm."""

    tree: Tree
    masses: dict[bytes, float]
    """By the canonical bytes of the outcome."""
    slack: float
    """What the leaves leave of 1."""

    @property
    def whole(self) -> bool:
        """Whether nothing is unexplored that counts."""
        return self.slack <= CLOSE

    def mass(self, law: Law, event: dict[str, Any]) -> float:
        """The mass of a listed event."""
        return math.fsum(self.masses[outcome] for outcome in law.members(event, self.masses))

    def admitted(self) -> bool:
        """Whether every check of admission is well, and looked at something wherever there was anything."""
        admission = self.tree.meta["admission"]
        due = ["replay", "interference"]
        due += ["refill"] * (admission["refill"]["eligible"] > 0)
        due += ["closed"] * (admission["closed"]["closed"] > 0)
        looked = all(admission[name]["checked"] for name in due)
        return looked and all(check["ok"] for check in admission.values())


def arm_of(tree: Tree) -> Arm:
    """Weigh the leaves, and sum them by outcome."""
    weights: dict[bytes, list[float]] = {}
    for leaf in tree.leaves:
        weights.setdefault(leaf.outcome, []).append(leaf.weight)
    total = math.fsum(weight for some in weights.values() for weight in some)
    masses = {outcome: math.fsum(some) for outcome, some in weights.items()}
    return Arm(tree=tree, masses=masses, slack=max(0.0, 1.0 - total))
