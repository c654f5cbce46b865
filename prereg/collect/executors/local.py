"""Workers on this machine: one thread for each, and each thread owns one worker process."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prereg.codec.canonical import Json, value_digest
from prereg.collect.executors.base import Failed, Finished, Job, Limits, Opening, Site
from prereg.collect.executors.crew import Crew
from prereg.collect.split import Plan, walk_split
from prereg.collect.split_checks import Checks
from prereg.collect.split_journal import Journal
from prereg.collect.trees import leaf_line
from prereg.collect.worker import Worker, WorkerLost, WorkerRefused, WorkerSilent, WorkerStopped
from prereg.errors import EngineFailed
from prereg.model.attempts import Cause

CHECK_SECONDS = 600.0
"""Longest silence of a walk: after its leaves come the checks, some hundred runs without a line."""

NO_PART = (KeyError, TypeError, ValueError, AttributeError)
"""What comes of reading a reply that is not of its form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A seat has taken a job and waits for leave to begin it."""

    job: Job
    leave: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)


class LocalExecutor:
    """Runs the jobs of one study on `site.workers` processes."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._stopping = False
        self._asks = False
        # SimpleQueue, because its put may be called by a signal handler that interrupted its get.
        self._results: queue.SimpleQueue[Finished | Failed | _Asked | BaseException | None] = (
            queue.SimpleQueue()
        )
        self._live: dict[int, Worker] = {}
        self._crews: list[Crew] = []

    def run(
        self,
        jobs: Sequence[Job],
        *,
        limits: Limits,
        wanted: Callable[[Job], bool],
        begin: Callable[[Job], bool] | None,
        advance: Callable[[Job, int], None],
    ) -> Generator[Finished | Failed, None, None]:
        """See `Executor.run`."""
        waiting = _Waiting(jobs, wanted)
        self._asks = begin is not None
        # A thread that is ahead of the intake waits here, so that finished shards never pile up in memory.
        room = threading.Semaphore(2 * self._site.workers)
        count = min(self._site.workers, max(1, len(jobs)))
        if any(_divisible(job) for job in jobs):
            count = self._site.workers
        threads = [
            threading.Thread(
                target=self._serve, args=(number, waiting, limits, advance, room), name=f"worker-{number}"
            )
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            running = count
            while running and not self._stopping:
                result = self._results.get()
                if result is None:
                    running -= not self._stopping
                elif isinstance(result, _Asked):
                    leave = False
                    try:
                        leave = begin is None or begin(result.job)
                    finally:
                        result.leave.put(leave)
                elif isinstance(result, BaseException):
                    raise result
                else:
                    yield result
                    room.release()
        finally:
            self.stop()
            for _ in threads:
                room.release()
            # A worker that was just starting when `stop` looked is not in its list then; it is now.
            while any(thread.is_alive() for thread in threads):
                self._refuse_all()
                for worker in list(self._live.values()):
                    worker.kill()
                for thread in threads:
                    thread.join(0.1)

    def stop(self) -> None:
        """See `Executor.stop`."""
        self._stopping = True
        self._results.put(None)
        for worker in list(self._live.values()):
            worker.kill()

    def _refuse_all(self) -> None:
        """Send away every seat that waits for leave."""
        while not self._results.empty():
            result = self._results.get()
            if isinstance(result, _Asked):
                result.leave.put(False)

    def _may_begin(self, job: Job) -> bool:
        if not self._asks:
            return True
        asked = _Asked(job=job)
        self._results.put(asked)
        return asked.leave.get() and not self._stopping

    def _serve(
        self,
        number: int,
        waiting: _Waiting,
        limits: Limits,
        advance: Callable[[Job, int], None],
        room: threading.Semaphore,
    ) -> None:
        seat = _Seat(self._site, number, self._live)
        try:
            while not self._stopping:
                room.acquire()
                job = None if self._stopping else waiting.take(seat.opened)
                if job is None:
                    room.release()
                    busy = next((crew for crew in list(self._crews) if crew.wants(number)), None)
                    if busy is None:
                        break
                    seat.help(busy, limits)
                    continue
                # Whoever has nothing to do finds the tree from now on, though it may not begin yet.
                crew = self._crew_of(job, limits, number)
                try:
                    if not self._may_begin(job):
                        room.release()
                        continue
                    result = seat.draw(job, limits, advance, crew)
                finally:
                    if crew is not None:
                        crew.close()
                if not self._stopping:
                    self._results.put(result)
        except BaseException as error:  # noqa: BLE001  (it is raised again where the results are read)
            self._results.put(error)
        finally:
            seat.leave()
            self._results.put(None)

    def _crew_of(self, job: Job, limits: Limits, seat: int) -> Crew | None:
        if not _divisible(job):
            return None
        crew = Crew(job, limits)
        crew.wants(seat)  # its own seat is not asked
        self._crews.append(crew)
        return crew


class _Waiting:
    """The jobs not yet taken, in order.

    A worker first gets one of the configuration that it has open, then one of the build that it runs: to
    start an engine takes longer than many a tree.
    """

    def __init__(self, jobs: Sequence[Job], wanted: Callable[[Job], bool]) -> None:
        self._wanted = wanted
        self._lock = threading.Lock()
        self._queues: dict[int, deque[Job]] = {}
        self._builds: dict[int, str] = {}
        for job in jobs:
            self._queues.setdefault(id(job.opening), deque()).append(job)
            self._builds[id(job.opening)] = job.opening.build

    def take(self, opened: Opening | None) -> Job | None:
        """The next wanted job, or None when there is none left."""
        build = None if opened is None else opened.build
        with self._lock:
            others = sorted(self._queues, key=lambda key: self._builds[key] != build)
            for key in [id(opened), *others]:
                jobs = self._queues.get(key)
                while jobs:
                    job = jobs.popleft()
                    if self._wanted(job):
                        return job
            return None


class _Seat:
    """One thread's place: its worker, if it has one, and what that worker has open."""

    def __init__(self, site: Site, number: int, live: dict[int, Worker]) -> None:
        self._site = site
        self._number = number
        self._live = live
        self._worker: Worker | None = None
        self.opened: Opening | None = None

    def draw(
        self, job: Job, limits: Limits, advance: Callable[[Job, int], None], crew: Crew | None
    ) -> Finished | Failed:
        """Draw one shard, or walk one tree, as a crew where it can be divided."""
        replies: list[Any] = []

        def received(reply: Any) -> None:
            replies.append(reply)
            advance(job, 1)

        def restarted(_: Any) -> None:
            advance(job, -len(replies))
            replies.clear()

        started = self._site.now()
        drawing = False
        limits.start(job)
        try:
            worker = self._opened_for(job, limits)
            drawing = True
            shared: dict[str, Any] = {
                "arm": job.arm,
                "seeds": [str(seed) for seed in job.shard.seeds()],
                "left": lambda: limits.left(job),
            }
            tree: Any = None
            if crew is not None:
                replies, tree = self._split(job, crew, worker, advance)
            elif job.walk is None:
                worker.call(
                    "draws",
                    rows=job.shard.rows,
                    silence=self._site.request_seconds,
                    streams={"request": received},
                    **shared,
                )
                if len(replies) != job.shard.requests:
                    # Where its replies are out of step, the next unit's would be: it must not serve another.
                    raise WorkerLost(
                        f"the worker sent {len(replies)} replies to {job.shard.requests} requests"
                    )
            else:
                tree = worker.call(
                    "choices",
                    silence=max(self._site.request_seconds, CHECK_SECONDS),
                    streams={"leaf": received, "restart": restarted},
                    **job.walk,
                    **shared,
                )
        except (WorkerLost, WorkerRefused) as error:
            advance(job, -len(replies))
            # Whatever state a failed job left in the engine, the next one shall not find it.
            self.leave(kill=True)
            return Failed(job=job, reason=_reason(error), cause=_cause(error, job, limits, drawing))
        finally:
            limits.stop(job)
        ended = self._site.now()
        return Finished(
            job=job,
            replies=replies,
            tree=tree,
            started=started.isoformat(),
            ended=ended.isoformat(),
        )

    def _split(
        self, job: Job, crew: Crew, worker: Worker, advance: Callable[[Job, int], None]
    ) -> tuple[list[Any], Any]:
        """Walk a whole tree in parts, this worker and whoever helps; its leaves and its end."""
        assert job.walk is not None
        unit, arm = job.shard.unit.id, str(job.arm["id"])
        seeds = {arm: [str(seed) for seed in job.shard.seeds()]}
        # The oracle is the analysis's affair, and so is what the leaves weigh.
        plan = Plan(
            arms=[job.arm], close=bool(job.walk["close_last"]), checks=Checks(seeds=seeds, oracle=False)
        )
        folder, build = self._site.journals, job.opening.build
        # Parts that were walked under other conditions are no parts of this walk: they have their own file.
        # So have those of another attempt, and of a result that this one is to be compared with.
        conditions: dict[str, Json] = {
            "walks": folder.name,
            "unit": unit,
            "network": self._site.isolation.network,
            "environment": self._site.fingerprints[build],
        }
        if job.attempt > 1 or job.again:
            conditions |= {"attempt": job.attempt, "again": job.again}
        identity = value_digest(conditions)
        journal = Journal(folder / f"{unit}-{identity[:12]}.jsonl", identity)
        crew.owned(worker)
        done = 0

        def told(_: str, leaves: int) -> None:
            nonlocal done
            done += leaves
            advance(job, leaves)

        try:
            (tree,) = walk_split(plan, crew, journal, told).values()
        except BaseException as error:
            advance(job, -done)
            if isinstance(error, NO_PART):
                raise WorkerLost(f"the worker returned what is no part of a tree: {error!r}") from None
            raise
        finally:
            # It stays until the collection is complete: a run that is killed begins where this one was.
            journal.close()
        end = {"runs": tree.runs, "unexplored": tree.unexplored, "admission": tree.admission}
        return [leaf_line(leaf) for leaf in tree.leaves], end

    def help(self, crew: Crew, limits: Limits) -> None:
        """Walk parts of another seat's tree.

        A worker that cannot even begin loses nobody's unit; what goes wrong over a part the owner tells.
        """
        if not crew.lasts():
            return
        limits.start(crew.job)
        try:
            crew.help(self._opened_for(crew.job, limits))
        except (WorkerLost, WorkerRefused, EngineFailed, *NO_PART):
            self.leave(kill=True)
        finally:
            limits.stop(crew.job)

    def _opened_for(self, job: Job, limits: Limits) -> Worker:
        if self.opened is job.opening and self._worker is not None:
            return self._worker
        if self._worker is not None and self.opened is not None and self.opened.build != job.opening.build:
            self.leave()
        if self._worker is None:
            try:
                self._worker = self._site.worker(job.opening.build, f"worker-{self._number}")
            except OSError as error:
                # The host's trouble, not the unit's: no evidence is given up for it.
                raise EngineFailed(
                    f"no worker could be started: {error}", next_step="prereg collect DIR"
                ) from None
            self._live[self._number] = self._worker
        self.opened = None
        self._worker.call(
            "open",
            **job.opening.fields(),
            cwd=self._site.folder,
            left=lambda: limits.left(job),
        )
        self.opened = job.opening
        return self._worker

    def leave(self, *, kill: bool = False) -> None:
        """End the worker, if there is one."""
        worker, self._worker, self.opened = self._worker, None, None
        self._live.pop(self._number, None)
        if worker is not None:
            if kill:
                worker.kill()
            worker.close()


def _divisible(job: Job) -> bool:
    """Whether a job is a tree that can be walked in parts: a whole one, without a floor."""
    return job.walk is not None and job.walk["mode"] == "full" and not job.walk["close_floor"]


def _cause(error: Exception, job: Job, limits: Limits, drawing: bool) -> Cause:
    """Why a job failed; a worker that is silent over its start or an `open` is not late with a request."""
    if isinstance(error, WorkerStopped):
        return limits.reached(job)
    return "request-ceiling" if drawing and isinstance(error, WorkerSilent) else "engine"


def _reason(error: Exception) -> str:
    if isinstance(error, WorkerRefused):
        return f"the engine refused: {error.message} ({error.code})"
    return str(error)
