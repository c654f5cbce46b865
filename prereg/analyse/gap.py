"""The largest of a value over the sealed events and their complements (docs/formats.md section 10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

TIE = 1e-11
"""Values closer than this are tied.

When an event and its opposite are both listed, each is the other's complement and the gaps are equal:
rounding must not choose between them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A value of an event, or of its complement."""

    value: float
    event: str
    complement: bool = False


def largest(candidates: Iterable[Candidate]) -> Candidate:
    """The largest value, at the first candidate that no other exceeds by more than a tie."""
    every = list(candidates)
    top = max(c.value for c in every)
    first = next(c for c in every if c.value >= top - TIE)
    return Candidate(value=top, event=first.event, complement=first.complement)
