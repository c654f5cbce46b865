"""The draws of one run: every missing shard, and then again the units that failed and are not over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prereg.collect.account import Account
from prereg.collect.ceilings import Clocks
from prereg.collect.cost import leaves_of, seconds_of
from prereg.collect.executors.base import Executor, Failed, Finished, Job, opening_of, walk_of
from prereg.collect.gates import Admission
from prereg.collect.intake import Binding, prepare
from prereg.collect.progress import Progress
from prereg.collect.signals import caught_signals
from prereg.errors import VerificationFailed
from prereg.model.plan import Shard, shards_of
from prereg.model.study import Unit
from prereg.seal.records import has_drafter


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What one run draws, with what, and how long it may take."""

    account: Account
    admission: Admission
    clocks: Clocks
    progress: Progress
    workers: int

    def run(self, make_pool: Callable[[], Executor]) -> bool:
        """Draw what is missing; returns whether a signal cut that short.

        What failed before comes in a round of its own, after the others. Each round has an executor of its
        own, made by `make_pool`.
        """
        pools: list[Executor] = []

        def stop() -> None:
            for pool in pools[-1:]:
                pool.stop()

        given: set[tuple[str, int]] = set()
        with caught_signals(stop) as caught:
            missing = self._in_order(self.admission.missing)
            shards = [s for s in missing if self._attempt(s) == 1] or missing
            while True:
                for unit, attempt in dict.fromkeys((s.unit.id, self._attempt(s)) for s in shards):
                    given.add((unit, attempt))
                    if attempt > 1:
                        allowed = self.account.allowed
                        self.progress.note(f"{unit} is tried again: attempt {attempt} of {allowed}")
                pools.append(make_pool())
                # A signal that came before the pool was in the list has not stopped it.
                if not caught:
                    self._round(pools[-1], self._jobs(shards), caught)
                if caught:
                    return True
                missing = self._in_order(self.account.missing())
                shards = [s for s in missing if (s.unit.id, self._attempt(s)) not in given]
                if not shards or self.clocks.study_left() <= 0:
                    return False

    def _in_order(self, shards: Sequence[Shard]) -> list[Shard]:
        """What an earlier result waits for comes first: until it is there, nothing can be compared."""
        waiting = self.account.waiting

        return sorted(shards, key=lambda s: (s.unit.id, self._attempt(s), s.index) not in waiting)

    def _attempt(self, shard: Shard) -> int:
        return self.account.standing(shard.unit.id).attempt

    def _round(self, pool: Executor, jobs: list[Job], caught: list[int]) -> None:
        """Run the jobs and take in what they bring."""
        results = pool.run(
            jobs,
            limits=self.clocks,
            wanted=lambda job: self.account.is_due(job) and self.clocks.study_left() > 0,
            # Before edition 3 nothing is entered, and nobody waits for whoever would enter it.
            begin=self.account.begin if self.account.third else None,
            advance=lambda job, requests: self._advance(job.shard, requests),
        )
        with contextlib.closing(results):
            for result in results:
                if caught:
                    break
                self._take(result)

    def _jobs(self, shards: Sequence[Shard]) -> list[Job]:
        protocol = self.admission.verified.study.protocol
        openings = {c.id: opening_of(protocol, c) for c in protocol.configurations}
        arms = {
            arm.id: {"id": arm.id, "role": arm.role, "speculation": arm.speculation} for arm in protocol.arms
        }
        walk = None if protocol.exact is None else walk_of(protocol.exact)
        return [
            Job(
                shard=shard,
                opening=openings[shard.unit.configuration],
                arm=arms[shard.unit.arm],
                walk=walk if shard.channel == "exact" else None,
                attempt=self._attempt(shard),
                again=self.account.results(shard.unit.id, self._attempt(shard), shard.index),
            )
            for shard in shards
        ]

    def _take(self, result: Finished | Failed) -> None:
        """Store a shard, or enter its unit as failed."""
        job, verified = result.job, self.admission.verified
        if not self.account.is_due(job):
            if isinstance(result, Finished) and self._tried_again(job):
                self._advance(job.shard, -len(result.replies))
            return
        if isinstance(result, Failed):
            self._lose(job, result)
            return
        binding = Binding(
            study=verified.study.protocol.study,
            seal=verified.seal,
            network=self.admission.isolation.network,
            environments=self.admission.fingerprints,
        )
        try:
            drafter = has_drafter(verified.study.protocol, job.shard.unit)
            prepared = prepare(result, binding, drafter=drafter)
        except VerificationFailed as error:
            self._advance(job.shard, -len(result.replies))
            reason = f"the worker returned what is no record: {error}"
            self._lose(job, Failed(job=job, reason=reason))
            return
        if self.account.take(prepared):
            return
        self._advance(job.shard, -len(result.replies))

    def _lose(self, job: Job, failed: Failed) -> None:
        unit = job.shard.unit
        self.account.lose(unit.id, failed.reason, failed.cause)
        if self._tried_again(job):
            # All of it is still to be drawn, what was stored too.
            for shard in self._stored(unit, job.attempt):
                self._advance(shard, -shard.requests)

    def _tried_again(self, job: Job) -> bool:
        return self.account.standing(job.shard.unit.id).attempt > job.attempt

    def _stored(self, unit: Unit, attempt: int) -> list[Shard]:
        study = self.admission.verified.study
        return [
            shard
            for shard in shards_of(study.protocol, study.seeds, unit)
            if shard.channel == "draws" and self.account.has(unit.id, attempt, shard.index)
        ]

    def _advance(self, shard: Shard, requests: int) -> None:
        """Count requests, or leaves of a tree."""
        study = self.admission.verified.study
        size = shard.requests if shard.channel == "draws" else leaves_of(study, shard)
        pace = (seconds_of(study, shard, self.admission.builds) or 0.0) / self.workers / size
        if shard.channel == "exact":
            self.progress.advance(0, requests * pace, leaves=requests)
        else:
            self.progress.advance(requests * shard.rows, requests * pace)
