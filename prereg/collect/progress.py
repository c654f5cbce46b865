"""What a long job says while it runs. Renderers live in the command line; this room only calls them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TextIO

from prereg.model.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a job will take, as far as it is known before it starts."""

    draws: int
    requests: int
    seconds: float | None
    """Wall-clock estimate, or None where a build states no rate or a tree's size is not known."""
    trees: int = 0
    """Trees of choices to be walked."""
    runs: int | None = 0
    """Engine runs for them, about; None where nothing tells."""

    def __str__(self) -> str:
        parts = []
        if self.draws or not self.trees:
            parts.append(f"{self.draws:,} draws in {self.requests:,} requests")
        if self.trees:
            runs = "a number of runs not known before" if self.runs is None else f"about {self.runs:,} runs"
            parts.append(f"{self.trees:,} trees of choices in {runs}")
        parts.append("time unknown" if self.seconds is None else f"about {duration(self.seconds)}")
        return ", ".join(parts)


class Progress(Protocol):
    """Receives a job's progress. `advance` and `note` may be called from any thread."""

    def note(self, text: str) -> None:
        """One line for the user: a step that starts, a unit that is lost."""
        ...

    def begin(self, total: int, done: int, cost: Cost) -> None:
        """The job starts: `done` of `total` draws were there before."""
        ...

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None:
        """`draws` more are made, of `work` estimated seconds; negative when made ones are thrown away.

        `leaves` counts the paths of the trees that are walked; how many there will be is not known before.
        """
        ...

    def end(self) -> None:
        """The job is over, whatever came of it."""
        ...


class Meter:
    """Rate and time left, from what was made since `begin`.

    A draw of one arm may cost a hundred times one of the other, so the time left follows the estimated work
    where there is an estimate, and the number of draws where there is none.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._start = clock()
        self.total = 0
        self.before = 0
        self.made = 0
        self.leaves = 0
        self._work = 0.0
        self._worked = 0.0

    def begin(self, total: int, done: int, work: float | None = None) -> None:
        """Start counting: `done` of `total` draws exist, and the rest is `work` estimated seconds."""
        with self._lock:
            self._start = self._clock()
            self.total, self.before, self.made, self.leaves = total, done, 0, 0
            self._work, self._worked = work or 0.0, 0.0

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None:
        """Count `draws` and `leaves` more (or fewer), and their work."""
        with self._lock:
            self.made += draws
            self.leaves += leaves
            self._worked += work

    def rate(self) -> float | None:
        """Draws a second so far, or None before the first."""
        return self._a_second(self.made)

    def _a_second(self, count: int) -> float | None:
        seconds = self._clock() - self._start
        return count / seconds if count > 0 and seconds > 0 else None

    def left(self) -> float | None:
        """Seconds left at the pace so far, or None before the first draw or leaf."""
        if self.made <= 0 and self.leaves <= 0:
            return None
        if self._work > 0 and self._worked > 0:
            share = min(1.0, self._worked / self._work)
            return (self._clock() - self._start) * (1 - share) / share
        rate = self.rate()
        return None if rate is None else max(0, self.total - self.before - self.made) / rate

    def line(self) -> str:
        """`done/total draws, rate, leaves, rate, time left`, without draws or leaves where there are none."""
        parts = []
        if self.total:
            done = self.before + self.made
            share = 100 * done / self.total if self.total else 100
            parts.append(f"{done:,}/{self.total:,} draws ({share:.0f} %)")
            if (rate := self.rate()) is not None:
                parts.append(f"{rate:,.0f} a second")
        if self.leaves or not self.total:
            parts.append(f"{self.leaves:,} leaves")
            if (rate := self._a_second(self.leaves)) is not None:
                parts.append(f"{rate:,.0f} a second")
        if (left := self.left()) is not None:
            parts.append(f"{duration(left)} left")
        return ", ".join(parts)


class Lines:
    """Plain lines on a text stream, one every few seconds: for logs and for terminals without rich."""

    def __init__(self, stream: TextIO, *, every: float = 5.0) -> None:
        self._stream = stream
        self._every = every
        self._meter = Meter()
        self._last = 0.0
        self._said: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def note(self, text: str) -> None:
        with self._lock:
            self._stream.write(visible(text) + "\n")
            self._stream.flush()

    def begin(self, total: int, done: int, cost: Cost) -> None:
        self._meter.begin(total, done, cost.seconds)
        self._last = time.monotonic()
        self.note(f"{cost}" if not done else f"{done:,} draws are there; to do: {cost}")

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None:
        self._meter.advance(draws, work, leaves)
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._tell()

    def end(self) -> None:
        if self._said != (self._meter.made, self._meter.leaves):
            self._tell()

    def _tell(self) -> None:
        self._said = (self._meter.made, self._meter.leaves)
        self.note(self._meter.line())


def duration(seconds: float) -> str:
    """A length of time for people: `4 s`, `3 min`, `2 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
