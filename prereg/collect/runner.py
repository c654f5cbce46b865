"""`collect`: run what a sealed study still misses, so that every sealed draw is there exactly once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from prereg.collect import gates
from prereg.collect.ceilings import Clocks, study_seconds, unit_seconds
from prereg.collect.cost import cost_of, leaves_of, seconds_of
from prereg.collect.executors.base import Executor, Failed, Finished, Job, Site, opening_of, walk_of
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.gates import Admission
from prereg.collect.intake import Binding, discard_leftovers, prepare, store
from prereg.collect.network import Isolation
from prereg.collect.progress import Progress
from prereg.collect.runtime import cache_folder
from prereg.collect.staging import Stage, staged
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed
from prereg.model.plan import Shard, plan
from prereg.model.record import Network, ShardMeta
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.keys import SigningKey
from prereg.seal.records import has_drafter, read_meta
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter
from prereg.store.lock import study_lock

STUDY_CEILING = "the study's ceiling of time was reached"
Pace = Callable[[Shard], float]
"""Estimated seconds of a shard's request, spread over the workers."""
_REASON = 2000
"""Characters of a reason that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectResult:
    """How a run of `collect` ended."""

    complete: bool
    """False after an interruption: `collect` again goes on where this run stopped."""
    planned: int
    """Shards of the plan."""
    stored: int
    """Shards that are stored now."""
    draws: int
    """Draws that this run stored."""
    leaves: int
    """Leaves of the trees that this run stored."""
    invalid: Mapping[str, str]
    """Units that are lost, each with its reason."""
    crashes: Mapping[str, int]
    """Draws and leaves of this run whose outcome is a crash, by unit."""
    network: Network | None
    """None if this run had nothing left to draw."""
    network_reason: str | None
    seconds: float
    commit: str

    @property
    def exit_code(self) -> int:
        """0 when the collection is complete, whatever was lost; 3 when it goes on."""
        return 0 if self.complete else EvidenceIncomplete.exit_code


def collect_study(
    paths: StudyPaths,
    *,
    key: SigningKey,
    principal: str,
    progress: Progress,
    workers: int | None = None,
    executor: Callable[[Site], Executor] = LocalExecutor,
) -> CollectResult:
    """Pass the gates, draw every missing shard, sign the ledger's head and commit.

    SIGINT and SIGTERM end the run cleanly and incomplete. A unit whose worker fails is entered as INVALID and
    the others go on. Raises WrongState, VerificationFailed or EngineFailed from the gates (nothing is drawn
    then), and EvidenceIncomplete if shards cannot be written; what is in the ledger stays valid throughout.
    """
    count = workers if workers is not None else max(1, len(os.sched_getaffinity(0)))
    if not 1 <= count <= 1024:
        raise UsageError("a number of workers is from 1 to 1024", where="--workers")
    gates.refuse_draft(paths)
    try:
        return _collect(paths, key, principal, progress, count, executor)
    except OSError as error:
        raise EvidenceIncomplete(
            f"the collection stopped: {error.strerror or error}",
            where=str(error.filename or paths.records),
            next_step=f"make room or mend access, then prereg collect {paths.root}",
        ) from None


def _collect(
    paths: StudyPaths,
    key: SigningKey,
    principal: str,
    progress: Progress,
    workers: int,
    executor: Callable[[Site], Executor],
) -> CollectResult:
    began = time.monotonic()
    with study_lock(paths, wait=0), LedgerWriter.open(paths, wait=0) as ledger:
        if ledger.note:
            progress.note(ledger.note)
        state = gates.state_of(paths, ledger)
        verified = gates.verify(paths)
        gates.refuse_signer(paths, key, principal)
        gates.refuse_unsigned_of_others(verified, principal)
        gates.refuse_second_attempt(verified)
        for name in discard_leftovers(paths, verified.entries):
            progress.note(f"{name}: left by a run that was killed; removed")
        run = _Run(paths=paths, ledger=ledger, key=key, principal=principal, verified=verified)
        if state == "unfinished":
            progress.note("the collection is complete; its end is signed and committed now")
            return run.finish(began, complete=True, isolation=None)
        with staged(verified.files, _executables(verified)) as stage:
            admission = gates.admit(verified, stage, progress)
            return run.draw(admission, stage, workers, executor, progress, began)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run, after the gates that need no workers."""

    paths: StudyPaths
    ledger: LedgerWriter
    key: SigningKey
    principal: str
    verified: VerifiedStudy
    invalid: dict[str, str] = field(default_factory=dict)
    stored: set[tuple[str, int]] = field(default_factory=set)
    draws: int = 0
    leaves: int = 0
    crashes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.invalid.update(self.verified.invalid)
        self.stored.update(self.verified.stored)

    def draw(
        self,
        admission: Admission,
        stage: Stage,
        workers: int,
        make_executor: Callable[[Site], Executor],
        progress: Progress,
        began: float,
    ) -> CollectResult:
        """Draw what is missing."""
        study, protocol = self.verified.study, self.verified.study.protocol
        cut = admission.isolation
        site = Site(
            code=stage.code,
            study=stage.study,
            scratch=stage.scratch,
            environments=admission.environments,
            fingerprints=admission.fingerprints,
            isolation=cut,
            workers=workers,
            request_seconds=float(protocol.ceilings.request_seconds),
            journals=journals_of(self.verified.seal),
            containers=admission.containers,
        )
        clocks = Clocks(
            protocol.ceilings,
            study_spent=study_seconds(self.verified.entries),
            unit_spent=unit_seconds(self._metas()),
        )
        if cut.network == "not-cut":
            progress.note(f"the workers' network is not cut: {cut.reason}")
        started: dict[str, Any] = {
            "seal": self.verified.seal,
            "attempt": 1,
            "environments": admission.fingerprints,
            "workers": workers,
            "network": cut.network,
            "network_reason": cut.reason,
        }
        if admission.containers is not None:
            started["container"] = admission.containers.as_json()
        self.ledger.append("collection-started", started, self.principal)
        drawn = {unit.id for unit in protocol.units("draws")}
        stored = self.verified.stored.items()
        there = sum(int(body["draws"]) for (unit, _), body in stored if unit in drawn)
        todo = sum(shard.draws for shard in admission.missing)
        progress.begin(there + todo, there, cost_of(study, admission.missing, admission.builds, workers))
        try:
            interrupted = self._run(admission, make_executor(site), clocks, progress, workers)
        except BaseException:
            # Files and ledger are sound as they are; the ledger shall say that the run ended, if it can.
            with contextlib.suppress(Exception):
                self.finish(began, complete=False, isolation=cut)
            raise
        finally:
            progress.end()
        if not interrupted:
            for unit in dict.fromkeys(shard.unit.id for shard in self._missing(admission)):
                self._lose(unit, STUDY_CEILING, progress)
        return self.finish(began, complete=not self._missing(admission), isolation=cut)

    def _run(
        self, admission: Admission, pool: Executor, clocks: Clocks, progress: Progress, workers: int
    ) -> bool:
        """Run the jobs and take in what they bring; returns whether a signal cut that short."""
        binding = Binding(
            study=self.verified.study.protocol.study,
            seal=self.verified.seal,
            network=admission.isolation.network,
            environments=admission.fingerprints,
        )
        study, builds = self.verified.study, admission.builds

        def pace(shard: Shard) -> float:
            size = shard.requests if shard.channel == "draws" else leaves_of(study, shard)
            return (seconds_of(study, shard, builds) or 0.0) / workers / size

        with _signals(pool.stop) as caught:
            results = pool.run(
                self._jobs(admission),
                limits=clocks,
                wanted=lambda job: job.shard.unit.id not in self.invalid and clocks.study_left() > 0,
                advance=lambda job, requests: _advance(progress, job.shard, requests, pace),
            )
            with contextlib.closing(results):
                for result in results:
                    if caught:
                        break
                    self._take(result, binding, progress, pace)
        return bool(caught)

    def _jobs(self, admission: Admission) -> list[Job]:
        protocol = self.verified.study.protocol
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
            )
            for shard in admission.missing
        ]

    def _take(self, result: Finished | Failed, binding: Binding, progress: Progress, pace: Pace) -> None:
        """Store a shard, or enter its unit as lost."""
        unit = result.job.shard.unit
        if unit.id in self.invalid:
            return
        if isinstance(result, Failed):
            self._lose(unit.id, result.reason, progress)
            return
        try:
            drafter = has_drafter(self.verified.study.protocol, unit)
            prepared = prepare(result, binding, drafter=drafter)
        except VerificationFailed as error:
            _advance(progress, result.job.shard, -len(result.replies), pace)
            self._lose(unit.id, f"the worker returned what is no record: {error}", progress)
            return
        store(self.paths, self.ledger, prepared, self.principal)
        self.stored.add((unit.id, prepared.shard.index))
        if prepared.shard.channel == "draws":
            self.draws += prepared.lines
        else:
            self.leaves += prepared.lines
        if prepared.crashes:
            self.crashes[unit.id] = self.crashes.get(unit.id, 0) + prepared.crashes

    def _lose(self, unit: str, reason: str, progress: Progress) -> None:
        """Enter a unit as INVALID: what is left of it is not drawn."""
        text = unicodedata.normalize("NFC", reason.encode("utf-8", "replace").decode("utf-8"))[:_REASON]
        self.ledger.append("unit-invalid", {"unit": unit, "attempt": 1, "reason": text}, self.principal)
        self.invalid[unit] = text
        progress.note(f"{unit} is INVALID: {text}")

    def _missing(self, admission: Admission) -> list[Shard]:
        return [
            shard
            for shard in admission.missing
            if shard.unit.id not in self.invalid and (shard.unit.id, shard.index) not in self.stored
        ]

    def _metas(self) -> Iterator[ShardMeta]:
        for unit, index in self.verified.stored:
            file = self.paths.shard_meta(unit, index)
            yield read_meta(read_once(file), where=str(file))

    def finish(self, began: float, *, complete: bool, isolation: Isolation | None) -> CollectResult:
        """Enter the end of the run (unless it is entered), sign the head, commit."""
        if self.ledger.state == "collecting":
            body: dict[str, Any] = {
                "seal": self.verified.seal,
                "complete": complete,
                "stored": len(self.stored),
                "invalid": sorted(self.invalid),
            }
            self.ledger.append("collection-ended", body, self.principal)
        if complete:
            shutil.rmtree(journals_of(self.verified.seal), ignore_errors=True)
        name = self.verified.study.protocol.study
        planned = len(plan(self.verified.study.protocol, self.verified.study.seeds))
        progress = "complete" if complete else f"{len(self.stored)} of {planned} shards"
        commit = sign_head_and_commit(
            self.paths,
            key=self.key,
            principal=self.principal,
            message=f"Collect study {name}: {progress}",
            touched=[self.paths.records],
        )
        return CollectResult(
            complete=complete,
            planned=planned,
            stored=len(self.stored),
            draws=self.draws,
            leaves=self.leaves,
            invalid=dict(self.invalid),
            crashes=dict(self.crashes),
            network=None if isolation is None else isolation.network,
            network_reason=None if isolation is None else isolation.reason,
            seconds=time.monotonic() - began,
            commit=commit,
        )


def journals_of(seal: str) -> Path:
    """Where a study's unfinished trees are kept: outside of the study, bound to its seal."""
    return cache_folder() / "walks" / seal


def _advance(progress: Progress, shard: Shard, requests: int, pace: Pace) -> None:
    """Count requests, or leaves of a tree."""
    work = requests * pace(shard)
    if shard.channel == "exact":
        progress.advance(0, work, leaves=requests)
    else:
        progress.advance(requests * shard.rows, work)


def _executables(verified: VerifiedStudy) -> frozenset[str]:
    return frozenset(file.path for file in verified.manifest.files if file.mode == "100755")


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Call `stop` on SIGINT and SIGTERM, and list those that came. Only the main thread can take them."""
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
