"""Whether draws and trees of one configuration say what cannot both be true (docs/formats.md 10 and 14)."""

from __future__ import annotations

from dataclasses import dataclass

from prereg.model.exact import ExactDecision
from prereg.model.verdict import Decision
from prereg.stats.gap import gap_of

ROUNDING = 1e-9
"""Intervals that miss each other by less are not told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """One event whose gap mu_on(A) - mu_off(A) the two channels put in intervals that do not meet."""

    event: str
    drawn: tuple[float, float]
    """Simultaneous bounds from the draws."""
    walked: tuple[float, float]
    """What the trees leave possible."""


def contradiction(drawn: Decision, walked: ExactDecision) -> Contradiction | None:
    """The event on which the channels are furthest apart, or None where both can be true.

    None as well for a configuration that lost a unit or is VOID in either channel: it claims nothing. The
    draws' bounds hold with the study's confidence, so that a contradiction points at the premise of fresh
    randomness, or at an engine that behaves otherwise under the intercepts.
    """
    if drawn.lost or walked.lost or "VOID" in (drawn.verdict, walked.verdict):
        return None
    s, t = walked.unexplored.off, walked.unexplored.on
    assert s is not None and t is not None
    found: list[tuple[float, Contradiction]] = []
    for bounds, masses in zip(drawn.bounds, walked.masses, strict=True):
        by_draws = (gap_of(bounds), -gap_of(bounds, complement=True))
        by_trees = (masses.on - masses.off - s, masses.on + t - masses.off)
        apart = max(by_draws[0] - by_trees[1], by_trees[0] - by_draws[1])
        if apart > ROUNDING:
            found.append((apart, Contradiction(event=masses.event, drawn=by_draws, walked=by_trees)))
    return max(found, key=lambda item: item[0])[1] if found else None
