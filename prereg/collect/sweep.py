"""Runs the cases of a sweep side by side, each worker one case after the other."""

from __future__ import annotations

import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from prereg.collect.runtime import environment_of, interpreter, load_build
from prereg.collect.sweep_case import Judge, run_case
from prereg.collect.sweep_walk import Lane
from prereg.collect.worker import WorkerLost, WorkerRefused
from prereg.errors import EngineFailed
from prereg.model.sweep import Case, Row, Table


def offered_by(build: str, table: Table) -> dict[str, Any]:
    """What the installed engine offers. Raises EngineFailed, or WrongState if the build is not made."""
    python = interpreter(environment_of(load_build(build)))
    with tempfile.TemporaryDirectory(prefix="prereg-sweep-") as scratch:
        lane = Lane(python, Path(scratch), build, table, str(table.drafter["kind"]))
        try:
            return lane.offered()
        except (WorkerLost, WorkerRefused, OSError) as error:
            raise EngineFailed(
                f"the engine cannot be looked at: {error}", next_step=f"prereg build {build}"
            ) from None
        finally:
            lane.close()


def run_cases(
    cases: Sequence[Case],
    build: str,
    table: Table,
    judge: Judge,
    *,
    drafter: str,
    processes: int,
    finished: Callable[[Row], None],
) -> None:
    """Run the cases; `finished` gets each row as it comes, on the calling thread.

    Whatever ends this early, workers are gone afterwards and finished rows have been handed over.
    Raises EngineFailed if no worker starts.
    """
    python = interpreter(environment_of(load_build(build)))
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        todo.put(case)
    rows: queue.SimpleQueue[Row] = queue.SimpleQueue()
    stopped = threading.Event()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prereg-sweep-")))
        lanes = [
            Lane(python, scratch / str(number), build, table, drafter)
            for number in range(min(processes, len(cases)))
        ]
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=max(1, len(lanes))))
        futures = [pool.submit(_work, lane, todo, rows, stopped, judge) for lane in lanes]
        try:
            for _ in _until_done(futures):
                _hand_over(rows, finished)
            _hand_over(rows, finished)
            for future in futures:
                future.result()
        except OSError as error:
            raise EngineFailed(
                f"a worker could not be started: {error}", next_step=f"prereg build {build}"
            ) from None
        finally:
            stopped.set()
            for lane in lanes:
                lane.kill()
    # Threads are joined here: a lane ends its own worker.


def _until_done(futures: Sequence[Future[None]]) -> Iterator[None]:
    left = set(futures)
    while left:
        _, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        yield


def _hand_over(rows: queue.SimpleQueue[Row], finished: Callable[[Row], None]) -> None:
    while not rows.empty():
        finished(rows.get())


def _work(
    lane: Lane,
    todo: queue.SimpleQueue[Case],
    rows: queue.SimpleQueue[Row],
    stopped: threading.Event,
    judge: Judge,
) -> None:
    try:
        while not stopped.is_set():
            try:
                case = todo.get_nowait()
            except queue.Empty:
                return
            row = run_case(case, lane, judge)
            if not stopped.is_set():  # of a worker that was killed from outside nothing can be said
                rows.put(row)
    finally:
        lane.close()
