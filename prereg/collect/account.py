"""What a run of `collect` enters in the ledger and stores, and how each unit stands after it.

Everything here happens in one thread, the one that reads the executor's results: evidence has one writer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prereg.collect.executors.base import Job
from prereg.collect.intake import Prepared, store
from prereg.collect.leftovers import Waiting, entered, touched
from prereg.collect.second import compare
from prereg.model.attempts import Cause, Tried, tried
from prereg.model.plan import Shard, plan
from prereg.model.visible import visible
from prereg.seal.shard_set import Place
from prereg.seal.verified import VerifiedStudy, over_units, present_shards, stored_shards
from prereg.store.files import read_once, sync_folder, write_whole
from prereg.store.ledger import LedgerWriter

_REASON = 2000
"""Characters of a reason that are kept."""


@dataclass(slots=True, kw_only=True)
class Account:
    """The ledger and the records of one study while they grow."""

    ledger: LedgerWriter
    principal: str
    verified: VerifiedStudy
    waiting: Waiting
    """Whole results that killed runs left, each to be compared with what is stored in its place."""
    note: Callable[[str], None]
    draws: int = 0
    """Draws that this run stored."""
    leaves: int = 0
    crashes: dict[str, int] = field(default_factory=dict)
    """Draws and leaves of this run whose outcome is a crash, by unit."""
    _units: dict[str, Tried] = field(default_factory=dict)
    _stored: set[Place] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._units = tried(self.ledger.entries, self.allowed)
        self._stored = set(stored_shards(self.ledger.entries))

    @property
    def third(self) -> bool:
        """Whether the study is of edition 3, in which units are tried again and second results are kept."""
        return self.verified.study.protocol.since(3)

    @property
    def allowed(self) -> int:
        """How often a unit may be tried."""
        return self.verified.study.protocol.attempts

    @property
    def over(self) -> dict[str, str]:
        """The units that are lost for good, each with the reason of its last failure."""
        return over_units(self.ledger.entries, self.allowed)

    @property
    def stored(self) -> int:
        """Shards that the ledger has stored, in every attempt."""
        return len(self._stored)

    @property
    def shards(self) -> int:
        """Shards that are stored now, of each unit in its present attempt."""
        return len(present_shards(self.ledger.entries, self.allowed))

    def standing(self, unit: str) -> Tried:
        """How a unit stands."""
        return self._units.get(unit, Tried())

    def missing(self) -> list[Shard]:
        """The planned shards that are still to be drawn, in protocol order."""
        study = self.verified.study
        return [
            shard
            for shard in plan(study.protocol, study.seeds)
            if not (one := self.standing(shard.unit.id)).over
            and (shard.unit.id, one.attempt, shard.index) not in self._stored
        ]

    def has(self, unit: str, attempt: int, shard: int) -> bool:
        """Whether a shard is stored in that attempt."""
        return (unit, attempt, shard) in self._stored

    def results(self, unit: str, attempt: int, shard: int) -> int:
        """Results of a shard that are there already and not stored: those that wait."""
        return len(self.waiting.get((unit, attempt, shard), ()))

    def is_due(self, job: Job) -> bool:
        """Whether a job is of its unit's present attempt, and that is not over."""
        one = self.standing(job.shard.unit.id)
        return job.attempt == one.attempt and not one.over

    def begin(self, job: Job) -> bool:
        """Enter that a shard is about to be drawn (edition 3); False if it need not be any more."""
        unit, attempt, shard = place_of(job)
        if not self.is_due(job) or self.has(unit, attempt, shard):
            return False
        self.ledger.append("attempt", {"unit": unit, "shard": shard, "attempt": attempt}, self.principal)
        return True

    def take(self, prepared: Prepared) -> bool:
        """Store a shard; or enter it as a duplicate of one that is stored in its place, and return False.

        Raises OSError if it cannot be written.
        """
        unit, shard = prepared.shard.unit.id, prepared.shard.index
        place = (unit, prepared.attempt, shard)
        if self.third and place in self._stored:
            self._compare(place, prepared.encoded.data, None)
            return False
        store(self.verified.paths, self.ledger, prepared, self.principal)
        self._stored.add(place)
        if prepared.shard.channel == "draws":
            self.draws += prepared.lines
        else:
            self.leaves += prepared.lines
        if prepared.crashes:
            self.crashes[unit] = self.crashes.get(unit, 0) + prepared.crashes
        self._settle(place)
        return True

    def settle(self) -> None:
        """Compare the second results of shards that an earlier run has stored, and was killed over."""
        for place in [place for place in self.waiting if place in self._stored]:
            self._settle(place)

    def lose(self, unit: str, reason: str, cause: Cause) -> None:
        """Enter that a unit failed: what is left of this attempt is not drawn."""
        text = unicodedata.normalize("NFC", reason.encode("utf-8", "replace").decode("utf-8"))
        text = visible(text)[:_REASON]  # the worker's last words are among it
        attempt = self.standing(unit).attempt
        body: dict[str, Any] = {"unit": unit, "attempt": attempt, "reason": text}
        if self.third:
            body["cause"] = cause
        self.ledger.append("unit-invalid", body, self.principal)
        self._units = tried(self.ledger.entries, self.allowed)
        counted = f" attempt {attempt} of {self.allowed}" if self.allowed > 1 else ""
        if self.standing(unit).over:
            word = "left open" if self.is_left_open(unit) else "INVALID"
            self.note(f"{unit} is {word}{counted and ' after' + counted}: {text}")
        else:
            self.note(f"{unit} failed in{counted}, and will be tried again: {text}")
        for place in [place for place in self.waiting if place[0] == unit]:
            self._drop(place)

    def touched(self) -> list[Path]:
        """What of the records is to be committed."""
        return touched(self.verified.paths, self.waiting)

    def is_left_open(self, unit: str) -> bool:
        """Whether a lost unit leaves its verdict open instead of INVALID."""
        return self.standing(unit).is_left_open(self.verified.study.protocol.ceilings.on_ceiling)

    def _settle(self, place: Place) -> None:
        for k in self.waiting.pop(place, []):
            path = self._copy(place, k)
            self._compare(place, read_once(path), path)

    def _compare(self, place: Place, gz: bytes, path: Path | None) -> None:
        """Enter a second result, which lies at `path` if it is on disk, and keep it only if it differs.

        The file comes before the entry and goes after it, so that a kill between them loses nothing.
        """
        unit, attempt, shard = place
        target = self._copy(place, entered(self.ledger.entries).get(place, 0) + 1)
        first = read_once(self.verified.paths.shard_records(unit, shard, attempt))
        found = compare(first, gz, where=f"{unit}/{shard:05d}")
        if path is None and found.differing:
            write_whole(target, gz)
        elif path is not None and path != target:
            path.replace(target)
            sync_folder(target.parent)
        body = {"unit": unit, "shard": shard, "attempt": attempt, **found.as_json()}
        self.ledger.append("duplicate", body, self.principal)
        told = f"{unit} shard {shard:05d}: a second result"
        if found.differing:
            name = target.relative_to(self.verified.paths.root).as_posix()
            self.note(f"{told}; {found.differing} of {found.lines} are not the same: kept as {name}")
        else:
            if path is not None:
                target.unlink()
            self.note(f"{told}, the same as the stored one")

    def _drop(self, place: Place) -> None:
        """Remove second results that have nothing any more to be compared with."""
        for k in self.waiting.pop(place, []):
            path = self._copy(place, k)
            path.unlink()
            name = path.relative_to(self.verified.paths.root).as_posix()
            self.note(f"{name}: its unit failed, so that there is nothing to compare it with; removed")

    def _copy(self, place: Place, k: int) -> Path:
        unit, attempt, shard = place
        return self.verified.paths.duplicate(unit, shard, attempt, k)


def place_of(job: Job) -> Place:
    """Unit, attempt and shard of a job."""
    return (job.shard.unit.id, job.attempt, job.shard.index)
