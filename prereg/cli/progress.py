"""A job's progress as a bar for people at a terminal, and as plain lines anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prereg.collect.progress import Cost, Progress


class Bar:
    """`prereg.collect.progress.Progress` drawn with rich: a bar, count, rate, time left."""

    def __init__(self) -> None:
        from prereg.collect.progress import Meter

        self._meter = Meter()
        self._bar: Any = None
        self._task: Any = None

    def note(self, text: str) -> None:
        from prereg.cli.output import say

        if self._bar is None:
            say(text)
        else:
            self._bar.console.print(text, markup=False, highlight=False)

    def begin(self, total: int, done: int, cost: Cost) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        from prereg.cli.output import console

        self.note(f"{cost}" if not done else f"{done:,} draws are there; to do: {cost}")
        self._meter.begin(total, done, cost.seconds)
        self._bar = Progress(BarColumn(), TextColumn("{task.description}", markup=False), console=console())
        self._task = self._bar.add_task(self._meter.line(), total=total, completed=done)
        self._bar.start()

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None:
        self._meter.advance(draws, work, leaves)
        if self._bar is not None:
            self._bar.update(self._task, advance=draws, description=self._meter.line())

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def renderer() -> Progress:
    """A bar on a terminal, else a line every few seconds, on stderr."""
    from prereg.collect.progress import Lines

    return Bar() if sys.stderr.isatty() else Lines(sys.stderr)
