"""Walks the tree of `harness.choices.tree`: depth first, or best first within a budget."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.choices.tree import Choices, Chooser, Diverged, Leaf, Point, Program, Run, Subtree, weigh

FULL = "full"
BEST_FIRST = "best-first"
MODES = (FULL, BEST_FIRST)

ROUNDING = 1e-9
"""More than a running sum of masses can be off."""

MAX_EXCLUDED = 64
"""Longest `exclude` a frontier names; beyond it, the siblings that are left are listed instead if fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When to stop: after so many runs, so many seconds, or so little left. None is no limit."""

    runs: int | None = None
    seconds: float | None = None
    mass: float | None = None
    """Stop as soon as the unexplored mass is at most this."""


@dataclass(slots=True, kw_only=True)
class _Group:
    """Siblings that are left to run: the same choices before, then one of `pending`."""

    points: tuple[Point, ...]
    """The choices before, as they were met: a replay must meet the same."""

    row: Any
    """Probabilities of the choice that the siblings differ in."""

    base: float
    """Weight of the choices before."""

    pending: npt.NDArray[np.int32]
    """Indices left, the next one last."""

    exclude: set[int]
    """Indices that are not left: neither pending nor light."""

    light: float = 0.0
    """Mass of the indices that are too light to be run; they are all that is neither pending nor excluded."""

    @property
    def choices(self) -> Choices:
        return tuple(point.taken for point in self.points)

    def mass(self) -> float:
        return self.base * math.fsum(self.row[self.pending].tolist()) + self.light

    def subtree(self) -> Subtree:
        return Subtree(choices=self.choices, exclude=frozenset(self.exclude), weight=self.mass())


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A replay that did not repeat what it replayed."""

    choices: Choices
    what: str
    size: float
    """Largest difference of two probabilities, where it is one of those; else 0."""


@dataclass(slots=True, kw_only=True)
class Explorer:
    """Runs a program once for each path and yields the leaves.

    Every run replays the choices before its new one; what it meets on the way is compared with what was met
    before, bit for bit, so that a program which remembers earlier runs is caught (`differences`).
    """

    program: Program
    mode: str = FULL
    budget: Budget = field(default_factory=Budget)
    roots: Sequence[Subtree] = (Subtree(choices=()),)
    close: bool = False
    """Take the program's word for the siblings of a last choice."""

    close_floor: float = 0.0
    """What weighs less stays unexplored: on a large vocabulary it would be many paths, and little mass."""

    expand: bool = False
    """See `Chooser.expand`."""

    runs: int = 0
    differences: list[Difference] = field(default_factory=list)
    _groups: list[tuple[float, int, _Group]] = field(default_factory=list)
    _roots: list[Subtree] = field(default_factory=list)
    _given_up: list[Subtree] = field(default_factory=list)
    """What is left of groups whose siblings are all too light."""
    _serial: int = 0
    _rest: float = 0.0
    """Running sum of the groups' masses, for the budget; `unexplored` sums anew."""

    def leaves(self) -> Iterator[Leaf]:
        """Yield leaves until the roots are exhausted or the budget is spent."""
        started = time.monotonic()
        self._roots = sorted(self.roots, key=lambda root: root.weight)
        while self._roots or self._groups:
            if self._spent(started):
                return
            # A root's weight may be a mere bound: look at it before anything that is known.
            yield from self._explore_root() if self._roots else self._explore_group()

    def _spent(self, started: float) -> bool:
        budget = self.budget
        if budget.runs is not None and self.runs >= budget.runs:
            return True
        if budget.seconds is not None and time.monotonic() - started >= budget.seconds:
            return True
        if budget.mass is None or self._roots or self._rest > budget.mass + ROUNDING:
            return False
        return self.unexplored() <= budget.mass

    def unexplored(self) -> float:
        """The mass (an upper bound where a root has not been reached) of what is left."""
        return math.fsum(
            [
                *(root.weight for root in self._roots),
                *(subtree.weight for subtree in self._given_up),
                *(group.mass() for _, _, group in self._groups),
            ]
        )

    def frontier(self) -> list[Subtree]:
        """What is left, as disjoint subtrees, heaviest first; `roots` of a later exploration."""
        left = [*self._roots, *self._given_up]
        for _, _, group in self._groups:
            few = len(group.exclude) <= MAX_EXCLUDED or len(group.pending) > len(group.exclude)
            if few or group.light > 0.0:
                left.append(group.subtree())
            else:
                left.extend(
                    Subtree(choices=(*group.choices, index), weight=group.base * float(group.row[index]))
                    for index in group.pending[::-1].tolist()
                )
        return sorted(left, key=lambda subtree: -subtree.weight)

    def _explore_root(self) -> list[Leaf]:
        root = self._roots.pop()
        done = self._run(root.choices, root.exclude, ())
        if done is None:
            return []
        chooser, run = done
        points, depth = chooser.points, len(root.choices)
        if len(points) > depth and points[depth].taken in root.exclude:
            return []  # nothing but rounding was left there
        return self._leaves(chooser, run, depth, root.exclude)

    def _explore_group(self) -> list[Leaf]:
        group = heapq.heappop(self._groups)[2] if self.mode == BEST_FIRST else self._groups.pop()[2]
        index = int(group.pending[-1])
        group.pending = group.pending[:-1]
        group.exclude.add(index)
        self._rest -= group.base * float(group.row[index])
        done = self._run((*group.choices, index), frozenset(), group.points)
        leaves: list[Leaf] = []
        if done is not None:
            chooser, run = done
            depth = len(group.points)
            met = chooser.points[depth]
            if np.array_equal(met.row, group.row):
                chooser.points[depth] = replace(met, row=group.row)
            else:
                self._differs((*group.choices, index), depth, met.row, group.row)
            leaves = self._leaves(chooser, run, depth + 1, frozenset())
            if self.close and len(chooser.points) == depth + 1:
                before = group.mass()
                leaves.extend(self._closed(leaves[0], group, run))
                self._rest -= before - group.mass()
        self._push(group)
        return leaves

    def _push(self, group: _Group) -> None:
        if not len(group.pending):
            if group.light > 0.0:
                self._given_up.append(group.subtree())
            return
        self._serial += 1
        if self.mode == BEST_FIRST:
            weight = group.base * float(group.row[group.pending[-1]])
            heapq.heappush(self._groups, (-weight, self._serial, group))
        else:
            self._groups.append((0.0, self._serial, group))

    def _run(
        self, prefix: Choices, exclude: frozenset[int], known: tuple[Point, ...]
    ) -> tuple[Chooser, Run] | None:
        chooser = Chooser(
            prefix=prefix, exclude=exclude, likeliest=self.mode == BEST_FIRST, expand=self.expand
        )
        self.runs += 1
        try:
            run = self.program.run(chooser)
        except Diverged as error:
            self.differences.append(Difference(choices=prefix, what=str(error), size=math.inf))
            return None
        if len(chooser.points) < len(prefix):
            what = "ended before all choices of the prefix"
            self.differences.append(Difference(choices=prefix, what=what, size=math.inf))
            return None
        self._compare(prefix, known, chooser.points)
        return chooser, run

    def _leaves(self, chooser: Chooser, run: Run, start: int, exclude: frozenset[int]) -> list[Leaf]:
        """The leaf that a run came to, and what its last choice tells; push what is left beside it."""
        points = chooser.points
        leaf = Leaf(
            choices=tuple(point.taken for point in points),
            kinds=tuple(point.kind for point in points),
            p=tuple(float(point.row[point.taken]) for point in points),
            weight=weigh(points),
            outcome=run.outcome,
            counters=run.counters,
            digest=run.digest,
            closed=False,
            filled=chooser.filled,
        )
        leaves = [leaf]
        base = weigh(points[:start])
        for at in range(start, len(points)):
            point = points[at]
            gone = {point.taken, *(exclude if at == start else ())}
            left = point.row > 0.0
            left[[index for index in gone if index < len(left)]] = False
            # The next one is taken from the end: the likeliest, or the lowest.
            pending = np.flatnonzero(left)[::-1].astype(np.int32)
            if self.mode == BEST_FIRST:
                pending = pending[np.argsort(point.row[pending], kind="stable")]
            group = _Group(points=tuple(points[:at]), row=point.row, base=base, pending=pending, exclude=gone)
            if self.close and at == len(points) - 1:
                leaves.extend(self._closed(leaf, group, run))
            self._lighten(group)
            self._rest += group.mass()
            self._push(group)
            base *= float(point.row[point.taken])
        return leaves

    def _lighten(self, group: _Group) -> None:
        """Give up the siblings below the floor, so that a row of them is one number and not an entry each."""
        is_light = group.base * group.row[group.pending] < self.close_floor
        if is_light.any():
            group.light = group.base * math.fsum(group.row[group.pending[is_light]].tolist())
            group.pending = group.pending[~is_light]

    def _closed(self, leaf: Leaf, group: _Group, run: Run) -> list[Leaf]:
        """Leaves for those siblings of a last choice that the program could tell; the group loses them."""
        weights = group.base * group.row[group.pending]
        is_told = (weights >= self.close_floor) & np.isin(group.pending, list(run.siblings))
        told = group.pending[is_told][::-1].tolist()
        group.pending = group.pending[~is_told]
        group.exclude.update(told)
        return [
            replace(
                leaf,
                choices=(*leaf.choices[:-1], index),
                p=(*leaf.p[:-1], float(group.row[index])),
                weight=group.base * float(group.row[index]),
                outcome=run.siblings[index],
                closed=True,
            )
            for index in told
        ]

    def _compare(self, prefix: Choices, known: Sequence[Point], points: list[Point]) -> None:
        for at, (before, now) in enumerate(zip(known, points, strict=False)):
            if before.row is not now.row and not np.array_equal(before.row, now.row):
                self._differs(prefix, at, now.row, before.row)
                return
            points[at] = before  # one copy of each row: those of a large vocabulary fill the memory

    def _differs(self, prefix: Choices, at: int, now: Any, before: Any) -> None:
        size = float(np.abs(now - before).max()) if now.shape == before.shape else math.inf
        self.differences.append(
            Difference(choices=prefix, what=f"choice {at} has other probabilities than before", size=size)
        )
