"""A progress that says nothing, for tests of what a job does."""

from __future__ import annotations

from prereg.collect.progress import Cost


class Silent:
    """Receives everything a `Progress` does."""

    def note(self, text: str) -> None: ...

    def begin(self, total: int, done: int, cost: Cost) -> None: ...

    def advance(self, draws: int, work: float = 0.0, leaves: int = 0) -> None: ...

    def end(self) -> None: ...
