"""How the error budget alpha is shared among bounds (docs/formats.md section 10; paper §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from prereg.model.law import Family
from prereg.model.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The share of one configuration."""

    B: int
    """Bounds of the configuration: counted from its family, never typed in."""
    level: float
    """One-sided level of each bound, alpha / (m B)."""


def bounds_of(family: Family) -> int:
    """B of a family: lower and upper bound of each listed event in both arms.

    Complements cost nothing: a bound of a complement is one minus the other bound of its event.
    """
    return 4 * len(family.events)


def level_of(alpha: float, m: int, B: int) -> float:
    """The level of one bound when `alpha` covers `m` configurations of `B` bounds each.

    Raises ValueError for an alpha outside (0, 1) or a count below 1.
    """
    if not 0 < alpha < 1 or m < 1 or B < 1:
        raise ValueError(f"no budget: alpha {alpha!r}, m {m!r}, B {B!r}")
    return alpha / (m * B)


def unions_of(categories: int) -> int:
    """Nonempty unions of categories, one of each complementary pair (Supplement D)."""
    return int(2 ** (categories - 1)) - 1


def budget_of(study: Study, configuration: str) -> Budget:
    """The budget of one configuration among those of the stages of draws.

    Raises KeyError if there is no such configuration, ValueError for a study without draws.
    """
    B = bounds_of(study.events.configurations[configuration])
    m = len(study.protocol.drawn())
    return Budget(B=B, level=level_of(study.protocol.alpha, m, B))
