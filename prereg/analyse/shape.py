"""Whether the leaves of an arm are a tree of choices (docs/formats.md section 14)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prereg.model.tree import TreeLeaf

SUM_TOLERANCE = 1e-9
"""How far a sum of probabilities may be from 1, and the slack that counts as none."""


def shape_fault(leaves: Sequence[TreeLeaf], unexplored: float) -> str | None:
    """What keeps the leaves from being a tree, in words; None for a tree. The order of the leaves is free.

    `unexplored` is the mass that the walk left.

    Leaves are walked in order of their choices: what two neighbours share includes what any two leaves around
    them share, so that neighbours are all that need be compared.
    """
    if not leaves:
        return "it has no leaf"
    sums = _Sums(whole=unexplored == 0.0)
    before: TreeLeaf | None = None
    for leaf in sorted(leaves, key=_choices):
        shared = 0
        if before is not None:
            shared = _shared(before.choices, leaf.choices)
            if shared == len(before.choices):
                return f"the leaf {_path(leaf)} goes on where another ends"
            if before.p[:shared] != leaf.p[:shared]:
                return f"the leaf {_path(leaf)} has other probabilities on a way that it shares"
            if before.kinds[: shared + 1] != leaf.kinds[: shared + 1]:
                return f"the leaf {_path(leaf)} has choices of another kind on a way that it shares"
        if fault := sums.add(leaf.p, shared):
            return fault
        before = leaf
    if fault := sums.end():
        return fault
    total = math.fsum([*(math.prod(leaf.p) for leaf in leaves), unexplored])
    if abs(total - 1.0) > SUM_TOLERANCE:
        return f"its weights and what is unexplored sum to {total!r}"
    return None


def _choices(leaf: TreeLeaf) -> tuple[int, ...]:
    return leaf.choices


def _shared(one: tuple[int, ...], two: tuple[int, ...]) -> int:
    """How many choices two paths have in common at their beginning."""
    last = len(one) - 1
    if len(two) > last >= 0 and one[:last] == two[:last] and one[last] != two[last]:
        return last
    size = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        size += 1
    return size


def _path(leaf: TreeLeaf) -> str:
    return str(list(leaf.choices))


class _Sums:
    """The probabilities of the known children of each node on the way to the present leaf."""

    def __init__(self, whole: bool) -> None:
        self._least = 1.0 - SUM_TOLERANCE if whole else -math.inf
        self._children: list[list[float]] = []

    def add(self, p: Sequence[float], shared: int) -> str | None:
        """Go on to a leaf with these probabilities that leaves the way of the last one after `shared`."""
        if self._children:
            if fault := self._close(shared + 1):
                return fault
            self._children[shared].append(p[shared])
            shared += 1
        self._children.extend([x] for x in p[shared:])
        return None

    def end(self) -> str | None:
        """Leave the last leaf."""
        return self._close(0)

    def _close(self, depth: int) -> str | None:
        """Leave the nodes at `depth` and below."""
        while len(self._children) > depth:
            total = math.fsum(self._children.pop())
            if not self._least <= total <= 1.0 + SUM_TOLERANCE:
                return f"the children of a node {len(self._children)} choices deep sum to {total!r}"
        return None
