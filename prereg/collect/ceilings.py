"""The protocol's ceilings of time, over all the runs that a collection took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from prereg.collect.executors.base import Job
from prereg.model.record import ShardMeta
from prereg.model.seal import Entry
from prereg.model.study import Ceilings
from prereg.store.ledger import parse_time


class Clocks:
    """Counts the seconds of the study (wall clock) and of each unit (worker seconds).

    A unit's seconds are those that workers spend on its shards, so that a ceiling does not depend on how many
    workers there are.
    """

    def __init__(
        self,
        ceilings: Ceilings,
        *,
        study_spent: float = 0.0,
        unit_spent: Mapping[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ceilings = ceilings
        self._clock = clock
        self._lock = threading.Lock()
        self._began = clock() - study_spent
        self._spent = dict(unit_spent or {})
        self._running: dict[str, list[float]] = {}
        """When each worker that is at a unit began; which of them ends first does not matter to the sum."""

    def start(self, job: Job) -> None:
        """See `Limits.start`."""
        with self._lock:
            self._running.setdefault(job.shard.unit.id, []).append(self._clock())

    def stop(self, job: Job) -> None:
        """See `Limits.stop`."""
        unit = job.shard.unit.id
        with self._lock:
            began = self._running[unit].pop()
            self._spent[unit] = self._spent.get(unit, 0.0) + self._clock() - began

    def left(self, job: Job) -> float:
        """See `Limits.left`."""
        return min(self.study_left(), self._unit_left(job.shard.unit.id))

    def study_left(self) -> float:
        """Seconds until the study's ceiling."""
        return self._ceilings.study_seconds - (self._clock() - self._began)

    def _unit_left(self, unit: str) -> float:
        with self._lock:
            now = self._clock()
            running = self._running.get(unit, [])
            spent = self._spent.get(unit, 0.0) + sum(now - began for began in running)
            return (self._ceilings.unit_seconds - spent) / max(1, len(running))


def study_seconds(entries: Iterable[Entry]) -> float:
    """What earlier runs took: from each start to the last entry before the next, by the ledger's times."""
    total = 0.0
    began: datetime | None = None
    last: datetime | None = None
    for entry in entries:
        moment = parse_time(entry.time)
        if entry.type == "collection-started":
            if began is not None and last is not None:
                total += (last - began).total_seconds()
            began = moment
        if entry.type in ("collection-started", "shard-stored", "unit-invalid", "collection-ended"):
            last = moment
    if began is not None and last is not None:
        total += (last - began).total_seconds()
    return total


def unit_seconds(metas: Iterable[ShardMeta]) -> dict[str, float]:
    """What the stored shards of each unit took, by metas as `read_meta` returns them."""
    spent: dict[str, float] = {}
    for meta in metas:
        seconds = (parse_time(meta.ended) - parse_time(meta.started)).total_seconds()
        spent[meta.unit] = spent.get(meta.unit, 0.0) + max(0.0, seconds)
    return spent
