"""The law that the leaves of one tree add up to: explored mass by outcome, and what no leaf accounts for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.choices.tree import Leaf
from harness.oracle.naive import canonical

TOLERANCE = 1e-6
"""Differences of two probabilities below this are the arithmetic of float32, not the engine's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The explored law of one arm."""

    p: Mapping[str, float]
    """Mass by canonical JSON of the outcome, in that order; correctly rounded sums."""

    slack: float
    """Mass that no leaf accounts for: 1 minus the sum of all leaves, at least 0."""

    proposals: int
    accepted: int
    """Summed over the leaves that were really run, unweighted: what the law rests on."""


def law(leaves: Iterable[Leaf]) -> Law:
    """Collect the leaves of one tree, or of disjoint parts of it."""
    weights: dict[str, list[float]] = {}
    proposals = accepted = 0
    for leaf in leaves:
        key = canonical(dict(leaf.outcome))
        weights.setdefault(key, []).append(leaf.weight)
        if not leaf.closed:
            proposals += leaf.counters.get("proposals", 0)
            accepted += leaf.counters.get("accepted", 0)
    everything = math.fsum(weight for listed in weights.values() for weight in listed)
    return Law(
        p={key: math.fsum(weights[key]) for key in sorted(weights)},
        slack=max(0.0, 1.0 - everything),
        proposals=proposals,
        accepted=accepted,
    )
