"""Laws, total variation, witnesses and the verdict of the exact channel, from the leaves alone.

The laws are sums of products of the probabilities that the engine handed to its sampler; nothing is sampled.
What the trees leave unexplored enters as slack: with explored masses a (off) and b (on), slacks s and t and
D = sum of max(0, a - b), the total variation lies in [D - t, D + s], because unexplored mass can at most fill
the deficit of one side, or fall on outcomes of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prereg.model.law import Event, Mass, Outcome, Predicate
from prereg.model.tree import ExactResult, ExactVerdict, Tree
from prereg.stats.membership import Membership, breaks

TOLERANCE = 1e-5
"""Total variation below this is the arithmetic of float32; the engines' own noise stays under 1e-6."""

SUM_TOLERANCE = 1e-9


def law_of(tree: Tree) -> dict[Outcome, float]:
    """The explored mass of every outcome, by correctly rounded sums."""
    parts: dict[Outcome, list[float]] = {}
    for leaf in tree.leaves:
        parts.setdefault(leaf.outcome, []).append(math.prod(leaf.p))
    return {outcome: math.fsum(weights) for outcome, weights in parts.items()}


def slack_of(law: Mapping[Outcome, float]) -> float:
    """What the leaves do not account for."""
    return max(0.0, 1.0 - math.fsum(law.values()))


def decide_exactly(
    off: Tree,
    on: Tree,
    *,
    events: Sequence[Event],
    predicates: Sequence[Predicate],
    tolerance: float = TOLERANCE,
) -> ExactResult:
    """The verdict on one configuration, and what it rests on.

    `VOID` if a tree is not admitted, `INCONCLUSIVE` if nothing was proposed or the interval holds the
    tolerance, `DEPARTS` if the total variation surely exceeds it, else `EQUAL_WITHIN_TOLERANCE`, which speaks
    of this model, prompt and horizon and presumes fresh randomness (paper §3, premise iii).
    """
    a, b = law_of(off), law_of(on)
    s, t = slack_of(a), slack_of(b)
    distance = math.fsum(max(0.0, p - b.get(outcome, 0.0)) for outcome, p in a.items())
    lower, upper = max(0.0, distance - t), min(1.0, distance + s)
    proposals = sum(leaf.proposals for leaf in on.leaves)
    verdict, reason = _verdict(off, on, a, b, lower, upper, proposals, tolerance)
    witness = math.fsum(
        p for outcome, p in b.items() if outcome not in a and any(breaks(outcome, q.rule) for q in predicates)
    )
    event, gap = _largest_gap(a, b, events, predicates)
    return ExactResult(
        verdict=verdict,
        reason=reason,
        tolerance=tolerance,
        tv_lower=lower,
        tv_upper=upper,
        off=_masses(a),
        on=_masses(b),
        slack_off=s,
        slack_on=t,
        witness_mass=witness,
        event=event,
        event_gap=gap,
        proposals=proposals,
        accepted=sum(leaf.accepted for leaf in on.leaves),
    )


def departing_paths(off: Tree, on: Tree, tolerance: float = 1e-6) -> list[tuple[int, ...]]:
    """On-arm paths to outcomes whose mass differs whatever is unexplored, shortest and heaviest first."""
    a, b = law_of(off), law_of(on)
    s, t = slack_of(a), slack_of(b)

    def departs(outcome: Outcome) -> bool:
        p, q = a.get(outcome, 0.0), b[outcome]
        return q - (p + s) > tolerance or p - (q + t) > tolerance

    found = [leaf for leaf in on.leaves if departs(leaf.outcome)]
    found.sort(key=lambda leaf: (len(leaf.choices), -math.prod(leaf.p), leaf.choices))
    return [leaf.choices for leaf in found]


def refusals(tree: Tree) -> list[str]:
    """The admission checks that a tree does not pass, by name; the sum of the leaves is checked here anew."""
    failed = [
        name
        for name, check in tree.admission.items()
        if isinstance(check, dict) and not check.get("ok", False)
    ]
    total = math.fsum([*(math.prod(leaf.p) for leaf in tree.leaves), tree.unexplored])
    if abs(total - 1.0) > SUM_TOLERANCE and "weights" not in failed:
        failed.append("weights")
    return failed


def _verdict(
    off: Tree,
    on: Tree,
    a: Mapping[Outcome, float],
    b: Mapping[Outcome, float],
    lower: float,
    upper: float,
    proposals: int,
    tolerance: float,
) -> tuple[ExactVerdict, str]:
    failed = [f"{arm} arm: {name}" for arm, tree in (("off", off), ("on", on)) for name in refusals(tree)]
    if failed:
        return "VOID", f"not admitted ({', '.join(failed)})"
    if not a or not b:
        return "INCONCLUSIVE", "an arm has no finished path within the budget"
    if proposals == 0:
        return "INCONCLUSIVE", "the drafter proposed nothing: speculation was not exercised"
    if lower > tolerance:
        return "DEPARTS", f"total variation at least {lower:.3g}, above {tolerance:g}"
    if upper <= tolerance:
        return (
            "EQUAL_WITHIN_TOLERANCE",
            f"total variation at most {upper:.3g}, for this model and prompt only",
        )
    return "INCONCLUSIVE", f"total variation between {lower:.3g} and {upper:.3g}; explore more"


def _masses(law: Mapping[Outcome, float]) -> tuple[Mass, ...]:
    return tuple(Mass(outcome=o, p=p) for o, p in sorted(law.items(), key=lambda item: -item[1]))


def _largest_gap(
    a: Mapping[Outcome, float],
    b: Mapping[Outcome, float],
    events: Sequence[Event],
    predicates: Sequence[Predicate],
) -> tuple[str | None, float | None]:
    if not events:
        return None, None
    member = Membership(events, predicates)
    rows = zip(events, member.probabilities(_masses(a)), member.probabilities(_masses(b)), strict=True)
    gaps = [(on - off, event.id) for event, off, on in rows]
    gap, name = max(gaps, key=lambda item: abs(item[0]))
    return name, gap
