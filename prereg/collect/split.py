"""A whole tree of choices, walked in parts by several workers, with a result that does not depend on them.

Each part is a subtree, walked for at most `PART_RUNS` runs; what it leaves becomes further parts. So the
parts, and what each of them finds, follow from the tree alone: neither the number of workers nor their order
matters. The leaves of all parts are put together in order of their choices and then checked on samples of the
whole, as those of an undivided walk are (`prereg.collect.split_checks`); a check that fails voids every part,
and the tree is walked again with fewer shortcuts. A journal keeps finished parts
(`prereg.collect.split_journal`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prereg.collect.lanes import Hands
from prereg.collect.leaf import leaf_of
from prereg.collect.split_checks import Checks, checked, merged_walk, restart_of, whole
from prereg.collect.split_journal import Journal
from prereg.collect.worker import Worker
from prereg.model.tree import Tree

PART_RUNS = 60
"""Engine runs in a part: a second or so of a tiny model, against some milliseconds for asking."""

SILENCE = 600.0
"""Seconds without a line from a worker after which it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to walk in the configuration that the workers have open."""

    arms: Sequence[Mapping[str, Any]]
    first: int | None = None
    """Only the law of the first so many tokens; None for all."""
    close: bool = True
    """Whether the last choice before the horizon is told from its row."""
    checks: Checks = field(default_factory=Checks)


@dataclass(slots=True, kw_only=True)
class _Arm:
    """One arm on its way."""

    arm: Mapping[str, Any]
    begun: float
    expand: bool = False
    close: bool = True
    waiting: int = 1
    """Parts that are asked for and not yet there."""
    parts: list[dict[str, Any]] = field(default_factory=list)
    leaves: int = 0
    restarts: list[str] = field(default_factory=list)
    tree: Tree | None = None

    @property
    def id(self) -> str:
        return str(self.arm["id"])

    def request(self, plan: Plan, prefixes: list[Any] | None) -> dict[str, Any]:
        """The fields of the operation `choices` for one part."""
        return {
            "arm": dict(self.arm),
            "mode": "full",
            "budget": {"runs": PART_RUNS},
            "close_last": self.close,
            "expand": self.expand,
            "first": plan.first,
            "prefixes": prefixes,
            "sample": 0,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One part of an arm to walk, or (without a request) the arm's parts to put together and check."""

    arm: _Arm
    request: dict[str, Any] | None


def walk_split(
    plan: Plan, lanes: Hands, journal: Journal, advance: Callable[[str, int], None]
) -> dict[str, Tree]:
    """Walk every arm of `plan` to its end, in all lanes at once; the trees by the arms' ids.

    `advance(arm, leaves)` is told of leaves as parts end, and of minus their number where they became void.
    Raises WorkerLost or WorkerRefused as soon as one worker does.
    """
    return _Scheduler(plan, journal, advance).run(lanes)


class _Scheduler:
    """Hands out tasks until every arm has its tree."""

    def __init__(self, plan: Plan, journal: Journal, advance: Callable[[str, int], None]) -> None:
        now = time.monotonic()
        self._plan = plan
        self._journal = journal
        self._advance = advance
        self._arms = [_Arm(arm=arm, begun=now, close=plan.close) for arm in plan.arms]
        self._tasks = deque(_Task(arm=arm, request=arm.request(plan, None)) for arm in self._arms)
        self._changed = threading.Condition()
        self._failed = False

    def run(self, lanes: Hands) -> dict[str, Tree]:
        lanes.every(self._serve)
        trees = {arm.id: arm.tree for arm in self._arms}
        return {name: tree for name, tree in trees.items() if tree is not None}

    def _serve(self, worker: Worker) -> None:
        try:
            while (task := self._next()) is not None:
                if task.request is None:
                    self._finish(task.arm, worker)
                else:
                    self._walked(task.arm, self._part(task.request, worker))
        except BaseException:
            with self._changed:
                self._failed = True
                self._changed.notify_all()
            raise

    def _next(self) -> _Task | None:
        with self._changed:
            while not self._tasks:
                if self._failed or all(arm.tree is not None for arm in self._arms):
                    return None
                self._changed.wait()
            return None if self._failed else self._tasks.popleft()

    def _part(self, request: dict[str, Any], worker: Worker) -> dict[str, Any]:
        known = self._journal.part(request)
        if known is not None:
            return known
        leaves: list[Any] = []
        done = worker.call("choices", silence=SILENCE, streams={"leaf": leaves.append}, **request)
        part = {**done, "leaves": leaves}
        self._journal.keep(request, part)
        return part

    def _walked(self, arm: _Arm, part: dict[str, Any]) -> None:
        with self._changed:
            arm.parts.append(part)
            arm.leaves += len(part["leaves"])
            for subtree in part["frontier"]:
                self._tasks.append(_Task(arm=arm, request=arm.request(self._plan, [subtree])))
            arm.waiting += len(part["frontier"]) - 1
            if not arm.waiting:
                self._tasks.append(_Task(arm=arm, request=None))
            self._changed.notify_all()
        self._advance(arm.id, len(part["leaves"]))

    def _finish(self, arm: _Arm, worker: Worker) -> None:
        """Put an arm's parts together; its tree, or a restart."""
        leaves = sorted((leaf for part in arm.parts for leaf in part["leaves"]), key=lambda x: x["choices"])
        walk = merged_walk(arm.parts)
        found = checked(worker, self._plan.checks, leaves, arm.arm, arm.expand, self._plan.first)
        reason = restart_of(found, walk)
        if reason is not None:
            arm.restarts.append(reason)
            arm.expand, arm.close = arm.expand or reason == "refill", arm.close and reason != "closed"
            arm.parts, arm.waiting = [], 1
            self._advance(arm.id, -arm.leaves)
            arm.leaves = 0
            self._add(_Task(arm=arm, request=arm.request(self._plan, None)))
            return
        found["refill"]["expanded"] = arm.expand
        found["closed"]["reopened"] = self._plan.close and not arm.close
        unaccounted = sum(int(part["admission"]["randomness"]["unaccounted"]) for part in arm.parts)
        admission = whole(leaves, walk, found, unaccounted)
        admission["restarts"] = arm.restarts
        tree = Tree(
            leaves=tuple(leaf_of(leaf) for leaf in leaves),
            runs=int(walk["runs"]),
            unexplored=float(admission["weights"]["unexplored"]),
            admission=admission,
            seconds=time.monotonic() - arm.begun,
        )
        with self._changed:
            arm.tree = tree
            self._changed.notify_all()

    def _add(self, task: _Task) -> None:
        with self._changed:
            self._tasks.append(task)
            self._changed.notify_all()
