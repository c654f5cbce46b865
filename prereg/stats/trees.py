"""How large a walk will be, from what is known before it: the oracle's law, or the bound of the protocol."""

from __future__ import annotations

from prereg.model.law import Decoded, Family
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
    paths = [m.outcome.tokens for m in family.reference if isinstance(m.outcome, Decoded)]
    runs = len({tokens[:-1] for tokens in paths}) if plan.close_last else len(paths)
    return (runs if plan.runs is None else min(runs, plan.runs)) + CHECK_RUNS
