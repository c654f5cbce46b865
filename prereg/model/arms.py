"""A number of each arm; `off` and `on` stand for the reference and the test arm, whatever their ids."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PerArm:
    """A count in the reference (off) and the test (on) arm; None where the unit is lost."""

    off: int | None
    on: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A probability in the reference (off) and the test (on) arm; None where the unit is lost."""

    off: float | None
    on: float | None
