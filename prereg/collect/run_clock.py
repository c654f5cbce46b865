"""A run's clock: the time of day is read once, and what passes after that is told by a clock nobody sets.

Whatever happens to the machine's time meanwhile, the times that a run writes never go back and never jump.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


def wall() -> datetime:
    """The machine's time of day, which anybody may set."""
    return datetime.now(UTC)


def passed() -> float:
    """Seconds by a clock that nobody sets; it goes on while the machine sleeps, where there is one that does.

    What a ceiling counts is told by another one, which stands still meanwhile (`Clocks`).
    """
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        return time.monotonic()
    return time.clock_gettime(clock)


class RunClock:
    """The times of one run. Safe from any thread."""

    def __init__(self, *, after: datetime) -> None:
        """Begin now, or at `after`, the time of the ledger's last entry, where the machine's is behind it."""
        self._began = max(wall(), after)
        self._zero = passed()

    def now(self) -> datetime:
        """The time; it never goes back."""
        return self._began + timedelta(seconds=passed() - self._zero)
