"""How the error budget alpha is shared among bounds (docs/formats.md section 10; paper §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from prereg.model.law import Family
from prereg.model.study import Study
from prereg.stats.records import record_events


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The share of one configuration."""

    B: int
    """Bounds of the configuration: counted from its events, never typed in."""
    records: int
    """Those among them that are of record events."""
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


def budget_of(study: Study, configuration: str) -> Budget:
    """The budget of one configuration among those of the stages of draws.

    Raises KeyError if there is no such configuration, ValueError for a study without draws.
    """
    records = 4 * len(record_events(study.protocol.configuration(configuration)))
    B = bounds_of(study.events.configurations[configuration]) + records
    m = len(study.protocol.drawn())
    return Budget(B=B, records=records, level=level_of(study.protocol.alpha, m, B))


def hypothesis_level(study: Study, configuration: str) -> float:
    """The level of each bound that a registered mechanism is tried by (docs/formats.md section 15).

    The hypotheses have an alpha of their own, shared by the registered configurations that are drawn; each
    has a lower and an upper bound of every listed event, in the on arm. Raises KeyError if there is no such
    configuration, ValueError where the protocol has no alpha for them.
    """
    plan = study.protocol.hypotheses
    if plan is None or plan.alpha is None:
        raise ValueError("the protocol has no alpha for hypotheses")
    h = sum(study.registered(c.id) is not None for c in study.protocol.drawn())
    return level_of(plan.alpha, h, 2 * len(study.events.configurations[configuration].events))
