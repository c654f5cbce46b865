"""How large a walk will be, from what is known before it: the oracle's law, or the bound of the protocol."""

from __future__ import annotations

import math

from prereg.model.law import Decoded, Family, Mass
from prereg.model.study import ExactPlan

CHECK_RUNS = 104
"""Runs of a unit's checks: 24 paths again, 24 filled in two other ways, 24 told ones run, 4 seeds twice."""


def expected_runs(plan: ExactPlan, family: Family) -> int | None:
    """Engine runs of one unit, about, its checks among them; None for an unbounded walk without an oracle.

    The sequential law has one path an outcome; where the last choice is told from its row, one run covers all
    outcomes that differ in their last token only. A speculating arm has a few more paths.
    """
    if family.reference is None:
        return None if plan.runs is None else plan.runs + CHECK_RUNS
    runs = len(_covered(plan, family.reference))
    return (runs if plan.runs is None else min(runs, plan.runs)) + CHECK_RUNS


def needed_runs(plan: ExactPlan, reference: tuple[Mass, ...]) -> int:
    """Least runs, about, after which no more than the plan's `mass` of the sequential law is unexplored."""
    left, runs = 1.0, 0
    for covered in _covered(plan, reference):
        if plan.mass > 0 and left <= plan.mass:
            break
        left -= covered
        runs += 1
    return runs


def hidden_mass(plan: ExactPlan, reference: tuple[Mass, ...]) -> float:
    """Mass of the sequential law that `close_floor` leaves unexplored: that of every path lighter than it."""
    return math.fsum(m.p for m in reference if m.p < plan.close_floor)


def _covered(plan: ExactPlan, reference: tuple[Mass, ...]) -> list[float]:
    """What each run covers of the sequential law, heaviest first."""
    found: dict[tuple[int, ...], float] = {}
    for mass in reference:
        if isinstance(mass.outcome, Decoded):
            path = mass.outcome.tokens[:-1] if plan.close_last else mass.outcome.tokens
            found[path] = found.get(path, 0.0) + mass.p
    return sorted(found.values(), reverse=True)
