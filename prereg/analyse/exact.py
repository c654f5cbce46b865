"""The verdict of `prereg probe` on two trees: that of docs/formats.md section 14, without a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from prereg.analyse.gap import Candidate, largest
from prereg.analyse.laws import (
    ArmLaw,
    Grounds,
    arm_law,
    law_of,
    slack_of,
    tv_interval,
    verdict_of,
    witness_mass,
    witnesses_of,
)
from prereg.analyse.shape import SUM_TOLERANCE
from prereg.model.law import Crashed, Event, Outcome, Predicate
from prereg.model.tree import ExactResult, ExactVerdict, Tree
from prereg.stats.membership import Membership

__all__ = ["EXPLAINED", "TOLERANCE", "decide_exactly", "departing_paths", "law_of", "refusals", "slack_of"]

TOLERANCE = 1e-5
"""Total variation below this is the arithmetic of float32; the engines' own noise stays under 1e-6."""

EXPLAINED = 10
"""Failing paths that are handed to the engine side to be explained, at most."""

MUST_CHECK = ("replay", "interference")
"""Admission checks that must have looked at something."""


def decide_exactly(
    off: Tree,
    on: Tree,
    *,
    events: Sequence[Event],
    predicates: Sequence[Predicate],
    tolerance: float = TOLERANCE,
) -> ExactResult:
    """The verdict on one configuration, and what it rests on.

    `VOID` if leaves are no tree or a tree is not admitted, `INCONCLUSIVE` if nothing was proposed or the
    interval holds the tolerance, `DEPARTS` if the total variation surely exceeds it or there is a witness,
    else `EQUAL_WITHIN_TOLERANCE`, which speaks of this model, prompt and horizon and presumes fresh
    randomness (paper §3, premise iii).
    """
    a, b = arm_law(off), arm_law(on)
    interval = tv_interval(a, b)
    witnesses = witnesses_of(a, b, predicates)
    refused = [f"{arm} arm: {name}" for arm, tree in (("off", off), ("on", on)) for name in refusals(tree)]
    grounds = Grounds(
        admitted=not refused,
        oracle=None,
        interval=interval,
        witness=bool(witnesses),
        tolerance=tolerance,
    )
    verdict, reasons = verdict_of(a, b, grounds)
    event, gap = _largest_gap(a, b, events, predicates)
    lower, upper = (None, None) if gap is None else (max(-1.0, gap - a.slack), min(1.0, gap + b.slack))
    return ExactResult(
        verdict=verdict,
        reason=_in_words(verdict, reasons, a, b, grounds, refused),
        tolerance=tolerance,
        tv_lower=interval[0],
        tv_upper=interval[1],
        off=a.masses(),
        on=b.masses(),
        slack_off=a.slack,
        slack_on=b.slack,
        witness_mass=witness_mass(witnesses),
        event=event,
        event_gap=gap,
        event_gap_lower=lower,
        event_gap_upper=upper,
        proposals=b.proposals,
        accepted=b.accepted,
    )


def departing_paths(off: Tree, on: Tree, tolerance: float = 1e-6) -> list[tuple[int, ...]]:
    """On-arm paths to outcomes whose mass differs whatever is unexplored, to be explained.

    The `EXPLAINED` shortest, and of those the heaviest first.
    """
    a, b = law_of(off), law_of(on)
    s, t = slack_of(a), slack_of(b)

    def departs(outcome: Outcome) -> bool:
        p, q = a.get(outcome, 0.0), b[outcome]
        return q - (p + s) > tolerance or p - (q + t) > tolerance

    found = [leaf for leaf in on.leaves if departs(leaf.outcome)]
    found.sort(key=lambda leaf: (len(leaf.choices), -math.prod(leaf.p), leaf.choices))
    return [leaf.choices for leaf in found[:EXPLAINED]]


def refusals(tree: Tree) -> list[str]:
    """The admission checks that a tree does not pass, by name, and those that looked at nothing."""
    failed = [
        name
        for name, check in tree.admission.items()
        if isinstance(check, dict) and not check.get("ok", False)
    ]
    for name in MUST_CHECK:
        check = tree.admission.get(name)
        if name not in failed and not (isinstance(check, dict) and check.get("checked", 0)):
            failed.append(name)
    return failed


def _in_words(
    verdict: ExactVerdict,
    reasons: Sequence[str],
    a: ArmLaw,
    b: ArmLaw,
    given: Grounds,
    refused: Sequence[str],
) -> str:
    lower, upper = given.interval
    match verdict:
        case "VOID":
            faults = [
                f"{arm} arm: {law.fault}" for arm, law in (("off", a), ("on", b)) if law.fault is not None
            ]
            return f"not admitted ({', '.join([*faults, *refused])})"
        case "DEPARTS":
            found = {
                "total-variation": f"total variation at least {lower:.3g}, above {given.tolerance:g}",
                "witness": "an outcome that plain sampling cannot return breaks a documented rule",
            }
            return ", and ".join(found[reason] for reason in reasons)
        case "EQUAL_WITHIN_TOLERANCE":
            return (
                f"total variation at most {upper:.3g}, for this model, prompt and horizon, "
                "presuming fresh randomness"
            )
        case "INCONCLUSIVE":
            if reasons[0] == "nothing-proposed":
                crashes = sorted({m.outcome.crash for m in a.masses() if isinstance(m.outcome, Crashed)})
                if crashes and a.crash_mass >= 1.0 - SUM_TOLERANCE:
                    return f"every request crashes, without speculation too ({', '.join(crashes)})"
                return "the drafter proposed nothing: speculation was not exercised"
            return f"total variation between {lower:.3g} and {upper:.3g}; explore more"
    assert_never(verdict)


def _largest_gap(
    a: ArmLaw, b: ArmLaw, events: Sequence[Event], predicates: Sequence[Predicate]
) -> tuple[str | None, float | None]:
    """The event whose gap is surely the largest, in either direction, and its gap of explored mass."""
    if not events:
        return None, None
    member = Membership(events, predicates)
    rows = zip(events, member.probabilities(a.masses()), member.probabilities(b.masses()), strict=True)
    gaps = {event.id: on - off for event, off, on in rows}
    widest = largest(
        Candidate(value=value, event=name, complement=complement)
        for name, gap in gaps.items()
        for complement, value in ((False, gap - a.slack), (True, -gap - b.slack))
    )
    return widest.event, gaps[widest.event]
