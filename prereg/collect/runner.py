"""`collect`: run what a sealed study still misses, so that every sealed draw is there exactly once.

In edition 3 a unit that fails is tried again where the protocol allows it, whole and on the same seeds: after
the others in the same run, or in the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.collect import gates
from prereg.collect.account import Account
from prereg.collect.ceilings import Clocks
from prereg.collect.cost import cost_of
from prereg.collect.earlier import Earlier, Times, earlier_runs
from prereg.collect.executors.base import Executor, Site
from prereg.collect.executors.local import LocalExecutor
from prereg.collect.gates import Admission
from prereg.collect.leftovers import take_up
from prereg.collect.network import Isolation
from prereg.collect.progress import Progress
from prereg.collect.result import CollectResult
from prereg.collect.rounds import Rounds
from prereg.collect.run_clock import RunClock
from prereg.collect.run_journal import RunJournal, Took
from prereg.collect.runtime import cache_folder
from prereg.collect.staging import Stage, staged
from prereg.errors import EvidenceIncomplete, UsageError
from prereg.model.attempts import copies_of, tried
from prereg.model.plan import plan
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.keys import SigningKey
from prereg.seal.verified import VerifiedStudy
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter, parse_time
from prereg.store.lock import study_lock

STUDY_CEILING = "the study's ceiling of time was reached"


def collect_study(
    paths: StudyPaths,
    *,
    key: SigningKey,
    principal: str,
    progress: Progress,
    workers: int | None = None,
    executor: Callable[[Site], Executor] = LocalExecutor,
    ledger_times: Times | None = None,
) -> CollectResult:
    """Pass the gates, draw every missing shard, sign the ledger's head and commit.

    SIGINT and SIGTERM end the run cleanly and incomplete. A unit whose worker fails is entered as failed, and
    the others go on. `ledger_times` is for a ceiling that is reached by them alone (see `earlier_runs`).

    Raises WrongState, VerificationFailed or EngineFailed from the gates (nothing is drawn
    then), and EvidenceIncomplete if shards cannot be written; what is in the ledger stays valid throughout.
    """
    count = workers if workers is not None else max(1, len(os.sched_getaffinity(0)))
    if not 1 <= count <= 1024:
        raise UsageError("a number of workers is from 1 to 1024", where="--workers")
    gates.refuse_draft(paths)
    try:
        return _collect(paths, key, principal, progress, count, executor, ledger_times)
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
    ledger_times: Times | None,
) -> CollectResult:
    began = time.monotonic()
    with study_lock(paths, wait=0), LedgerWriter.open(paths, wait=0) as ledger:
        if ledger.note:
            progress.note(ledger.note)
        state = gates.state_of(paths, ledger)
        verified = gates.verify(paths)
        clock = RunClock(after=parse_time(ledger.entries[-1].time))
        ledger.clock = clock.now
        gates.refuse_signer(paths, key, principal, clock.now())
        gates.refuse_unsigned_of_others(verified, principal)
        gates.refuse_second_attempt(verified)
        earlier = Earlier()
        if state != "unfinished":
            earlier = earlier_runs(verified, journals_of(verified.seal), ledger_times, progress.note)
        run = _Run(
            account=Account(
                ledger=ledger,
                principal=principal,
                verified=verified,
                waiting=take_up(verified, progress.note),
                note=progress.note,
            ),
            paths=paths,
            key=key,
            verified=verified,
            progress=progress,
            workers=workers,
            began=began,
            clock=clock,
            earlier=earlier,
        )
        if state == "unfinished":
            progress.note("the collection is complete; its end is signed and committed now")
            return run.finish(complete=True, isolation=None)
        with staged(verified.files, _executables(verified)) as stage:
            admission = gates.admit(verified, stage, progress)
            return run.draw(admission, stage, executor)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run, after the gates that need no workers."""

    account: Account
    paths: StudyPaths
    key: SigningKey
    verified: VerifiedStudy
    progress: Progress
    workers: int
    began: float
    clock: RunClock
    earlier: Earlier

    def draw(
        self, admission: Admission, stage: Stage, make_executor: Callable[[Site], Executor]
    ) -> CollectResult:
        """Draw what is missing."""
        study, protocol = self.verified.study, self.verified.study.protocol
        account, progress, cut = self.account, self.progress, admission.isolation
        site = Site(
            code=stage.code,
            study=stage.study,
            scratch=stage.scratch,
            environments=admission.environments,
            fingerprints=admission.fingerprints,
            isolation=cut,
            workers=self.workers,
            request_seconds=float(protocol.ceilings.request_seconds),
            journals=journals_of(self.verified.seal),
            now=self.clock.now,
            containers=admission.containers,
        )
        clocks = Clocks(protocol.ceilings, study_spent=self.earlier.study(), unit_spent=self.earlier.units())
        if cut.network == "not-cut":
            progress.note(f"the workers' network is not cut: {cut.reason}")
        started: dict[str, Any] = {
            "seal": self.verified.seal,
            "attempt": 1,
            "environments": admission.fingerprints,
            "workers": self.workers,
            "network": cut.network,
            "network_reason": cut.reason,
        }
        if admission.containers is not None:
            started["container"] = admission.containers.as_json()
        rounds = Rounds(
            account=account, admission=admission, clocks=clocks, progress=progress, workers=self.workers
        )
        account.ledger.append("collection-started", started, account.principal)
        self._keep_journal(clocks)
        account.settle()
        drawn = {unit.id for unit in protocol.units("draws")}
        stored = self.verified.stored.items()
        there = sum(int(body["draws"]) for (unit, _), body in stored if unit in drawn)
        todo = sum(shard.draws for shard in admission.missing)
        progress.begin(there + todo, there, cost_of(study, admission.missing, admission.builds, self.workers))
        try:
            interrupted = rounds.run(lambda: make_executor(site))
        except BaseException:
            # Files and ledger are sound as they are; the ledger shall say that the run ended, if it can.
            with contextlib.suppress(Exception):
                self.finish(complete=False, isolation=cut)
            raise
        finally:
            progress.end()
        if not interrupted:
            for unit in dict.fromkeys(shard.unit.id for shard in account.missing()):
                account.lose(unit, STUDY_CEILING, "study-ceiling")
        return self.finish(complete=not account.missing(), isolation=cut)

    def _keep_journal(self, clocks: Clocks) -> None:
        """From now on note what this run has taken whenever something is entered."""
        ledger = self.account.ledger
        journal = RunJournal(journals_of(self.verified.seal), ledger.head)

        def keep(seq: int) -> None:
            spent = clocks.took()
            journal.keep(Took(seq=seq, study=spent.study, units=spent.units))

        ledger.entering = keep
        keep(len(ledger.entries))

    def finish(self, *, complete: bool, isolation: Isolation | None) -> CollectResult:
        """Enter the end of the run (unless it is entered), sign the head, commit."""
        account, protocol = self.account, self.verified.study.protocol
        entries = account.ledger.entries
        if account.ledger.state == "collecting":
            body: dict[str, Any] = {
                "seal": self.verified.seal,
                "complete": complete,
                "stored": account.stored,
                "invalid": sorted(account.over),
            }
            account.ledger.append("collection-ended", body, account.principal)
        if complete:
            shutil.rmtree(journals_of(self.verified.seal), ignore_errors=True)
        planned = len(plan(protocol, self.verified.study.seeds))
        word = "complete" if complete else f"{account.shards} of {planned} shards"
        commit = sign_head_and_commit(
            self.paths,
            key=self.key,
            principal=account.principal,
            message=f"Collect study {protocol.study}: {word}",
            touched=account.touched(),
        )
        return CollectResult(
            complete=complete,
            planned=planned,
            stored=account.shards,
            draws=account.draws,
            leaves=account.leaves,
            invalid=account.over,
            left_open=frozenset(unit for unit in account.over if account.is_left_open(unit)),
            tried=tried(entries, account.allowed),
            attempts=account.allowed,
            duplicates=copies_of(entries),
            crashes=dict(account.crashes),
            network=None if isolation is None else isolation.network,
            network_reason=None if isolation is None else isolation.reason,
            seconds=time.monotonic() - self.began,
            commit=commit,
        )


def journals_of(seal: str) -> Path:
    """Where a study's unfinished trees are kept, and what its runs took: outside of it, bound to its seal."""
    return cache_folder() / "walks" / seal


def _executables(verified: VerifiedStudy) -> frozenset[str]:
    return frozenset(file.path for file in verified.manifest.files if file.mode == "100755")
