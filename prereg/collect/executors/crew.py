"""Several seats at one tree: the one that took the job, and whoever has nothing else to do.

Which of them walks which part changes nothing in the tree (`prereg.collect.split`), so idle seats may come
and go. A worker that is lost over a part loses the unit, as it does over a draw.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, cast

from prereg.collect.executors.base import Job, Limits
from prereg.collect.worker import Worker

Serve = Callable[[Worker], Any]

HELP_AFTER = 5.0
"""Seconds that a walk must have lasted before another worker is started for it."""


class Crew:
    """One tree and the workers that are on it. Safe from any thread."""

    def __init__(self, job: Job, limits: Limits) -> None:
        self.job = job
        self._limits = limits
        self._changed = threading.Condition()
        self._begun = time.monotonic()
        self._serve: Serve | None = None
        self._owner: Worker | None = None
        self._asked: set[int] = set()
        self._helping = 0
        self._over = False
        self._errors: list[BaseException] = []

    def wants(self, seat: int) -> bool:
        """Whether a seat may still help; each is asked once."""
        with self._changed:
            if self._over or seat in self._asked:
                return False
            self._asked.add(seat)
            return True

    def lasts(self) -> bool:
        """Wait for `HELP_AFTER`, or for the end if that comes first; whether the walk still goes on."""
        with self._changed:
            self._changed.wait_for(lambda: self._over, self._begun + HELP_AFTER - time.monotonic())
            return not self._over

    def owned(self, worker: Worker) -> None:
        """Name the worker of the seat that took the job."""
        self._owner = worker

    def every(self, call: Serve) -> list[Any]:
        """Let every worker of the crew `call`, the owner's in this thread; raises the first error of any."""
        assert self._owner is not None
        with self._changed:
            self._serve = call
            self._changed.notify_all()
        try:
            call(self._limited(self._owner))
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._helping == 0)
        if self._errors:
            raise self._errors[0]
        return []

    def close(self) -> None:
        """Nobody is needed any more, whatever came of it."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def help(self, worker: Worker) -> None:
        """Walk parts with a worker that has the configuration open, until the tree is done or lost.

        Raises what the worker's calls raise; the owner raises it too.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._serve is not None or self._over)
            if self._over or self._serve is None:
                return
            serve = self._serve
            self._helping += 1
        try:
            serve(self._limited(worker))
        except BaseException as error:
            self._errors.append(error)
            raise
        finally:
            with self._changed:
                self._over = True
                self._helping -= 1
                self._changed.notify_all()

    def _limited(self, worker: Worker) -> Worker:
        # Whoever walks parts knows nothing of ceilings, and needs of a worker no more than its calls.
        return cast(Worker, _Limited(worker, lambda: self._limits.left(self.job)))


class _Limited:
    """A worker whose every call ends at the ceilings of time."""

    def __init__(self, worker: Worker, left: Callable[[], float]) -> None:
        self._worker = worker
        self._left = left

    def call(self, op: str, **fields: Any) -> Any:
        return self._worker.call(op, left=self._left, **fields)
