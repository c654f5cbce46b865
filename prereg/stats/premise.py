"""What the test of the premise can see, computed exactly before any data (docs/formats.md section 14).

An arm's draws fail the premise of the exact stage where a bound lies beyond the mass that the arm's tree has.
The tree's masses are not known before it is walked, so the reference law stands in for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prereg.model.study import Configuration, Study
from prereg.stats.budget import bounds_of, level_of
from prereg.stats.exact import lower
from prereg.stats.power import base_rates, least_counts, tails


@dataclass(frozen=True, slots=True, kw_only=True)
class PremiseRow:
    """What one arm's draws can see of an event that they do not draw with the tree's mass."""

    configuration: str
    arm: str
    draws: int
    level: float
    """One-sided level of each bound."""
    base_rate: float
    """The representative mass at which the power is least."""
    planned_gap: float
    power_at_planned_gap: float | None
    """None if the planned gap does not fit above any representative mass."""
    target: float
    reachable: bool
    """Whether any draws at all could fail the premise by a bound."""


def premise_table(study: Study) -> list[PremiseRow]:
    """A row for each arm of each configuration whose premise is tested, in the order of the exact stage."""
    protocol = study.protocol
    if protocol.exact is None or protocol.exact.premise_alpha is None:
        return []
    drawn = {c.id for c in protocol.drawn()}
    tested = [c for c in protocol.walked() if c.id in drawn]
    rows = []
    for configuration in tested:
        B = bounds_of(study.events.configurations[configuration.id])
        level = level_of(protocol.exact.premise_alpha, len(tested), B)
        for arm in protocol.arms:
            draws = protocol.sampling[arm.id].draws
            rows.append(_row(study, configuration, arm.id, draws, level))
    return rows


def _row(study: Study, configuration: Configuration, arm: str, draws: int, level: float) -> PremiseRow:
    plan = study.protocol.power
    rates = [rate for rate, _ in base_rates(study, configuration)]
    powers = {rate: premise_power(draws, level, rate, plan.gap) for rate in rates if rate + plan.gap <= 1}
    worst = min(powers, key=lambda rate: powers[rate]) if powers else rates[0]
    return PremiseRow(
        configuration=configuration.id,
        arm=arm,
        draws=draws,
        level=level,
        base_rate=worst,
        planned_gap=plan.gap,
        power_at_planned_gap=powers.get(worst),
        target=plan.target,
        reachable=lower(draws, draws, level) > min(rates),
    )


def premise_power(draws: int, level: float, mass: float, gap: float) -> float:
    """Probability that L exceeds `mass` when the event is drawn with probability `mass + gap`."""
    least = least_counts(np.array([mass]), draws, level)
    return float(tails(least, draws, mass + gap)[0])
