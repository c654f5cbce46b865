"""Laws, and bounds on their distance, from the leaves of two trees.

Write a(y) and b(y) for the explored mass of outcome y on the two arms, s = 1 - sum a and t = 1 - sum b for
what is unexplored. The true laws are mu = a + u and nu = b + v, where u, v >= 0 are unknown but have sums s
and t. With D = sum over y of max(0, a - b):

- TV(mu, nu) = sum max(0, mu - nu) >= sum max(0, a - b - v) >= D - t, as u only adds and v takes away at most
  t. From the other side TV >= sum max(0, b - a) - s, which is the same number, because
  D - sum max(0, b - a) = sum a - sum b = t - s. The bound is attained by u and v that level a and b.
- TV(mu, nu) = 1 - sum min(mu, nu) <= 1 - sum min(a, b) = D + s, as sum a = 1 - s = D + sum min(a, b). It is
  attained by u and v on different outcomes that are new to both.

So TV lies in [max(0, D - t), min(1, D + s)], and no narrower interval follows from a, b, s and t alone. For
an event A, mu(A) lies in [a(A), a(A) + s].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.choices.tree import Leaf
from harness.oracle.naive import canonical

TOLERANCE = 1e-6
"""Differences of two probabilities below this are the arithmetic of float32, not the engine's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The explored law of one arm."""

    p: Mapping[str, float]
    """Mass by canonical JSON of the outcome, in that order; correctly rounded sums."""

    outcomes: Mapping[str, Mapping[str, Any]]
    slack: float
    """Mass that no leaf accounts for: 1 minus the sum of all leaves, at least 0."""

    proposals: int
    accepted: int
    """Summed over the leaves that were really run, unweighted: what the law rests on."""

    def rows(self) -> list[dict[str, Any]]:
        """The law as data: `[{"outcome", "p"}, ...]`."""
        return [{"outcome": self.outcomes[key], "p": p} for key, p in self.p.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A closed interval."""

    lower: float
    upper: float


def law(leaves: Iterable[Leaf]) -> Law:
    """Collect the leaves of one tree, or of disjoint parts of it."""
    weights: dict[str, list[float]] = {}
    outcomes: dict[str, Mapping[str, Any]] = {}
    proposals = accepted = 0
    for leaf in leaves:
        key = canonical(dict(leaf.outcome))
        weights.setdefault(key, []).append(leaf.weight)
        outcomes[key] = leaf.outcome
        if not leaf.closed:
            proposals += leaf.counters.get("proposals", 0)
            accepted += leaf.counters.get("accepted", 0)
    everything = math.fsum(weight for listed in weights.values() for weight in listed)
    return Law(
        p={key: math.fsum(weights[key]) for key in sorted(weights)},
        outcomes=outcomes,
        slack=max(0.0, 1.0 - everything),
        proposals=proposals,
        accepted=accepted,
    )


def excess(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Sum of max(0, a - b)."""
    return math.fsum(max(0.0, p - b.get(key, 0.0)) for key, p in a.items())


def total_variation(off: Law, on: Law) -> Interval:
    """Where the total variation of the two true laws lies; see the module for the proof.

    Rounding: each sum is correctly rounded and each weight a product of few factors, so that the ends are
    right to about 1e-13.
    """
    distance = excess(off.p, on.p)
    return Interval(
        lower=min(1.0, max(0.0, distance - on.slack)), upper=min(1.0, max(0.0, distance + off.slack))
    )


def failing(off: Law, leaves: Sequence[Leaf], limit: int = 10, tolerance: float = TOLERANCE) -> list[Leaf]:
    """On-arm leaves whose outcome has another mass on the other arm, fewest choices and heaviest first.

    An outcome counts if no completion of what is unexplored could make the masses equal.
    """
    on = law(leaves)

    def departs(leaf: Leaf) -> bool:
        key = canonical(dict(leaf.outcome))
        a, b = off.p.get(key, 0.0), on.p[key]
        return b - (a + off.slack) > tolerance or a - (b + on.slack) > tolerance

    found = [leaf for leaf in leaves if leaf.weight > 0.0 and departs(leaf)]
    return sorted(found, key=lambda leaf: (len(leaf.choices), -leaf.weight, leaf.choices))[:limit]
