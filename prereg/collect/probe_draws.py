"""Draws of both arms of one configuration, for a probe: counted, not kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.collect.choices import ARMS, SILENCE
from prereg.collect.lanes import Lanes
from prereg.collect.worker import Worker
from prereg.errors import EngineFailed
from prereg.model.law import Mass, Outcome

CHUNK = 25
"""Requests that a worker is handed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How many draws, and from which seeds: the off arm's come first, then the on arm's."""

    draws: int
    """Of each arm."""
    seed_base: int
    rows: int
    """Draws of one request of the off arm; the on arm has one a request."""

    def seeds(self, arm: Mapping[str, Any]) -> list[tuple[int, int]]:
        """The requests of an arm: a seed and its rows each."""
        whole, rest = divmod(self.draws, self.rows)
        off = [self.rows] * whole + ([rest] if rest else [])
        if not arm["speculation"]:
            return [(self.seed_base + at, rows) for at, rows in enumerate(off)]
        return [(self.seed_base + len(off) + at, 1) for at in range(self.draws)]

    @property
    def requests(self) -> int:
        """Requests of both arms."""
        return sum(len(self.seeds(arm)) for arm in ARMS)


@dataclass(slots=True, kw_only=True)
class Counted:
    """What the draws of one arm add up to."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    proposals: int = 0
    verifications: int = 0
    accepted: int = 0

    @property
    def draws(self) -> int:
        """How many there were."""
        return self.outcomes.total()


def draw_arms(wanted: Draws, lanes: Lanes, advance: Callable[[int], None]) -> dict[str, Counted]:
    """Draw both arms in all lanes at once; what they add up to does not depend on the lanes.

    `advance(draws)` is called from worker threads. Raises WorkerLost or WorkerRefused, and EngineFailed for
    replies that are not the draws asked for.
    """
    found = {str(arm["id"]): Counted() for arm in ARMS}
    jobs: SimpleQueue[tuple[Mapping[str, Any], int, list[str]]] = SimpleQueue()
    for arm in ARMS:
        requests = wanted.seeds(arm)
        for rows in sorted({rows for _, rows in requests}, reverse=True):
            seeds = [str(seed) for seed, size in requests if size == rows]
            for at in range(0, len(seeds), CHUNK):
                jobs.put((arm, rows, seeds[at : at + CHUNK]))
    guard = threading.Lock()

    def serve(worker: Worker) -> None:
        while True:
            try:
                arm, rows, seeds = jobs.get_nowait()
            except Empty:
                return

            def count(reply: Any, into: Counted = found[str(arm["id"])], rows: int = rows) -> None:
                with guard:
                    _count(reply, into, rows)
                advance(rows)

            worker.call(
                "draws", silence=SILENCE, streams={"request": count}, arm=dict(arm), seeds=seeds, rows=rows
            )

    lanes.every(serve)
    return found


def _count(reply: Any, into: Counted, rows: int) -> None:
    draws = reply["draws"]
    if len(draws) != rows:
        raise EngineFailed(f"a request of {rows} draws returned {len(draws)}")
    for draw in draws:
        into.outcomes[outcome_from(draw["outcome"])] += 1
        into.proposals += int(draw["counters"]["proposals"])
        into.verifications += int(draw["counters"]["verifications"])
        into.accepted += int(draw["counters"]["accepted"])


def reference_of(worker: Worker) -> tuple[Mass, ...]:
    """The law P of the open configuration, from the oracle. Raises WorkerRefused if there is none."""
    law = worker.call("law", silence=SILENCE)["law"]
    return tuple(Mass(outcome=outcome_from(mass["outcome"]), p=float(mass["p"])) for mass in law)


def first_tokens(worker: Worker) -> list[int]:
    """The first tokens of plain sampling, likeliest first, by one run of the engine."""
    weights: dict[int, float] = {}

    def leaf(value: Any) -> None:
        tokens = value["outcome"].get("tokens")
        if tokens:
            weights[tokens[0]] = weights.get(tokens[0], 0.0) + float(value["weight"])

    worker.call(
        "choices",
        silence=SILENCE,
        streams={"leaf": leaf, "restart": lambda _: weights.clear()},
        arm=dict(ARMS[0]),
        mode="best-first",
        first=1,
        sample=0,
    )
    return sorted(weights, key=lambda token: (-weights[token], token))
