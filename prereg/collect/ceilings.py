"""The protocol's ceilings of time, over all the runs that a collection took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prereg.collect.executors.base import Job
from prereg.model.attempts import Cause
from prereg.model.seal import Entry, EntryType
from prereg.model.study import Ceilings
from prereg.store.ledger import parse_time


class Clocks:
    """Counts the seconds of the study (wall clock) and of each unit (worker seconds, of all its attempts).

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
        self._began = clock()
        self._study_before = study_spent
        self._units_before = dict(unit_spent or {})
        self._spent: dict[str, float] = {}
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

    def reached(self, job: Job) -> Cause:
        """See `Limits.reached`."""
        return "study-ceiling" if self.study_left() <= 0 else "unit-ceiling"

    def study_left(self) -> float:
        """Seconds until the study's ceiling."""
        return self._ceilings.study_seconds - self._study_before - (self._clock() - self._began)

    def took(self) -> Spent:
        """What this run took by now, without those before it."""
        with self._lock:
            now = self._clock()
            spent = Spent(study=now - self._began, units=dict(self._spent))
            for unit, running in self._running.items():
                spent.add(0.0, {unit: sum(now - began for began in running)})
            return spent

    def _unit_left(self, unit: str) -> float:
        with self._lock:
            now = self._clock()
            running = self._running.get(unit, [])
            spent = self._units_before.get(unit, 0.0) + self._spent.get(unit, 0.0)
            spent += sum(now - began for began in running)
            return (self._ceilings.unit_seconds - spent) / max(1, len(running))


_DURING: tuple[EntryType, ...] = (
    *("collection-started", "attempt", "shard-stored", "duplicate", "unit-invalid", "collection-ended"),
)
"""Entries that a run makes."""


@dataclass(slots=True, kw_only=True)
class Spent:
    """What runs took: seconds of the study, and of workers at each unit."""

    study: float = 0.0
    units: dict[str, float] = field(default_factory=dict)

    def add(self, study: float, units: Mapping[str, float]) -> None:
        """Add what another took."""
        self.study += study
        for unit, seconds in units.items():
            self.units[unit] = self.units.get(unit, 0.0) + seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the ledger has of one run of a collection."""

    digest: str
    """Of its `collection-started` line."""
    entries: tuple[Entry, ...]
    """Those that it made; the first says that it started."""


def runs_of(entries: Sequence[Entry], head: str) -> list[Run]:
    """The runs that a ledger tells of, in order; `head` is the digest of its last line."""
    found: list[tuple[str, list[Entry]]] = []
    following = [*(entry.prev for entry in entries[1:]), head]
    for entry, line in zip(entries, following, strict=True):
        if entry.type == "collection-started":
            found.append((line, []))
        if entry.type in _DURING:
            found[-1][1].append(entry)
    return [Run(digest=line, entries=tuple(made)) for line, made in found]


def by_ledger(run: Run, ceilings: Ceilings, seconds_of: Callable[[Entry], float], *, after: int = 0) -> Spent:
    """What a run took by the ledger's times, from its start, or from entry `after`, to its last entry.

    `seconds_of` tells from its meta what a stored shard took; one that was begun and not stored took until
    its unit failed, or until the last entry. Nothing takes longer than `longest`, whatever a clock says.
    """
    most = longest(ceilings)
    spent = Spent()
    begun: dict[tuple[str, int], float] = {}
    now, last = 0.0, parse_time(run.entries[0].time)

    def close(unit: str | None) -> None:
        for place in [place for place in begun if unit in (None, place[0])]:
            spent.add(0.0, {place[0]: min(now - begun.pop(place), most)})

    for entry in run.entries:
        moment = parse_time(entry.time)
        if entry.seq > after:
            now += min(max(0.0, (moment - last).total_seconds()), most)
        last = moment
        match entry.type:
            case "attempt":
                begun[entry.body["unit"], entry.body["shard"]] = now
            case "shard-stored":
                begun.pop((entry.body["unit"], entry.body["shard"]), None)
                if entry.seq > after:
                    spent.add(0.0, {entry.body["unit"]: max(0.0, min(seconds_of(entry), most, now))})
            case "unit-invalid":
                close(entry.body["unit"])
            case _:
                pass
    close(None)
    spent.add(now, {})
    return spent


def longest(ceilings: Ceilings) -> float:
    """Seconds that may lie between two entries of a run.

    A worker that gets a shard is stopped after its unit's ceiling, and that is entered. The rest is for what
    nothing watches, such as the start of a worker; should that take longer, too little is counted.
    """
    return float(ceilings.unit_seconds + ceilings.request_seconds)
