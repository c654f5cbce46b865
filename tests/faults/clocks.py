"""A machine whose clock is set by somebody, or that sleeps, for the process that it is called in."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from itertools import count
from typing import Any

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
VERBS = ("prereg.collect.runner", "prereg.analyse.run", "prereg.audit.run", "prereg.seal.enter")


def set_clock(shift: Callable[[int], timedelta]) -> None:
    """The n-th time of day that is asked for, from 0, is off by `shift(n)`: wherever prereg asks for it."""
    asked = count()

    class Off(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Off:
            found = datetime.now(tz) + shift(next(asked))
            return cls.fromisoformat(found.isoformat())

    for name in VERBS:
        importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.startswith("prereg.") and getattr(module, "datetime", None) is datetime:
            module.datetime = Off  # type: ignore[attr-defined]


def sleep_between() -> None:
    """The machine sleeps for a day whenever a run is about to look at its clock."""
    from prereg.collect import run_clock

    real, asked = run_clock.passed, count()

    def passed() -> float:
        return real() + DAY.total_seconds() * next(asked)

    run_clock.passed = passed


def kill_at_keep(nth: int) -> None:
    """`kill -9` of the whole group when a run is about to note for the nth time what it took."""
    from prereg.collect.run_journal import RunJournal

    real, called = RunJournal.keep, count(1)

    def keep(journal: Any, took: Any) -> None:
        if next(called) == nth:
            os.killpg(0, signal.SIGKILL)
        real(journal, took)

    RunJournal.keep = keep  # type: ignore[method-assign]
