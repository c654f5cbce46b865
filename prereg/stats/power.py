"""What a design can see, computed exactly before any data (paper §4.2; `prereg check`).

The power is that of one event: the probability that L_on(A) - U_off(A) exceeds the threshold when the event
has probability p_off in the reference arm and p_on in the test arm, all draws being independent. D is a
maximum over a family, so the power of the whole rule is at least that of any of its events.
Sums over counts leave out less than 3e-14 and carry binomial masses to a relative 1e-8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from prereg.model.study import Configuration, Study
from prereg.stats.budget import budget_of
from prereg.stats.exact import Floats, lower, lowers, upper, uppers
from prereg.stats.membership import membership_of

TAIL = 1e-14
"""Probability that a windowed sum may leave out, on each side."""
RATES = (0.01, 0.1, 0.5)
"""Base rates of a configuration without a reference law."""


def window(n: int, p: float) -> tuple[int, int]:
    """Half-open range of counts outside which Binomial(n, p) has at most TAIL on each side (Bernstein)."""
    reach = math.log(1 / TAIL)
    spread = reach / 3 + math.sqrt(reach * reach / 9 + 2 * reach * n * p * (1 - p))
    return max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread)) + 1


def masses(k: NDArray[np.int64], n: int, p: float) -> Floats:
    """Binomial(n, p) probabilities of the counts `k`, same shape."""
    log = (
        special.gammaln(n + 1)
        - special.gammaln(k + 1)
        - special.gammaln(n - k + 1)
        + special.xlogy(k, p)
        + special.xlog1py(n - k, -p)
    )
    return np.asarray(np.exp(log))


def tails(k: NDArray[np.int64], n: int, p: float | Floats) -> Floats:
    """P(X >= k) for X from Binomial(n, p); k and p broadcast, and k may run from 0 to n + 1."""
    inside = np.clip(k, 1, n)
    value = special.betainc(inside, n - inside + 1, p)
    return np.asarray(np.where(k <= 0, 1.0, np.where(k > n, 0.0, value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The sampling of one comparison."""

    n_off: int
    """Draws of the reference arm."""
    n_on: int
    """Draws of the test arm."""
    level: float
    """One-sided level of each bound."""
    threshold: float
    """D must exceed this."""


class Rejection:
    """The counts that reject, for one base rate of the reference arm.

    For each count of the reference arm in its window, `least` is the smallest count of the test arm whose
    lower bound exceeds the reference arm's upper bound by more than the threshold (n_on + 1 if none does).
    """

    def __init__(self, design: Design, p_off: float) -> None:
        self.design = design
        first, last = window(design.n_off, p_off)
        k_off = np.arange(first, last, dtype=np.int64)
        self.weights = masses(k_off, design.n_off, p_off)
        limit = uppers(k_off, design.n_off, design.level) + design.threshold
        self.least = least_counts(limit, design.n_on, design.level)

    def power(self, p_on: float) -> float:
        """Probability of rejection when the event has probability `p_on` in the test arm."""
        return float(min(1.0, np.dot(self.weights, tails(self.least, self.design.n_on, p_on))))


def least_counts(limit: Floats, n: int, level: float) -> NDArray[np.int64]:
    """Smallest k with L(k of n) > limit, elementwise, for limits not below 0; n + 1 where none is enough.

    L(k) > x exactly if P(X >= k) < level at probability x, which needs no quantile: bisection on k.
    """
    low = np.zeros(limit.shape, dtype=np.int64)
    high = np.full(limit.shape, n + 1, dtype=np.int64)
    x = np.clip(limit, 0.0, 1.0)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = tails(middle, n, x) < level
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return high


def gap_power(design: Design, p_off: float, p_on: float) -> float:
    """Exact power of L_on(A) - U_off(A) > threshold for one event."""
    return Rejection(design, p_off).power(p_on)


def detectable_gap(design: Design, p_off: float, target: float) -> float | None:
    """Smallest gap p_on - p_off seen with probability `target`, to 1e-6 from above.

    None if not even an event that always happens in the test arm is seen that often.
    """
    return _detectable(Rejection(design, p_off), p_off, target)


def _detectable(rejection: Rejection, p_off: float, target: float) -> float | None:
    if rejection.power(1.0) < target:
        return None
    low, high = 0.0, 1.0 - p_off
    while high - low > 1e-6:
        middle = (low + high) / 2
        if rejection.power(p_off + middle) >= target:
            high = middle
        else:
            low = middle
    return high


def witness_power(w: float, n: int) -> float:
    """Probability of at least one witness of mass `w` in `n` draws: 1 - (1 - w)^n."""
    return 1.0 if w >= 1 else -math.expm1(n * math.log1p(-w))


def detectable_witness(n: int, target: float) -> float:
    """Smallest witness mass of which `n` draws show one with probability `target`."""
    return -math.expm1(math.log1p(-target) / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRow:
    """What one configuration can see of an event with one base rate."""

    configuration: str
    base_rate: float
    """Probability of the event in the reference arm."""
    base_event: str | None
    """A listed event that has it; None without a reference law."""
    detectable_gap: float | None
    """Smallest gap seen with the planned probability; None if no gap is."""
    planned_gap: float
    """The gap of interest from the protocol."""
    power_at_planned_gap: float | None
    """None if the planned gap does not fit above the base rate."""
    planned_witness: float
    """The witness mass of interest from the protocol."""
    witness_power: float | None
    """Probability of seeing a witness of that mass; None where no predicate binds."""
    detectable_witness: float | None
    """Smallest witness mass seen with the planned probability; None where no predicate binds."""
    target: float
    """The planned probability."""
    level: float
    """One-sided level of each bound."""


def design_of(study: Study, configuration: Configuration) -> Design:
    """The sampling of one configuration of a study."""
    p = study.protocol
    return Design(
        n_off=p.sampling[p.reference_arm.id].draws,
        n_on=p.sampling[p.test_arm.id].draws,
        level=budget_of(study, configuration.id).level,
        threshold=p.decision.threshold,
    )


def base_rates(study: Study, configuration: Configuration) -> list[tuple[float, str | None]]:
    """Representative P(A): least, quartiles and largest over the listed events, with an event that has it.

    Without a reference law: RATES, without an event.
    """
    family = study.events.configurations[configuration.id]
    if family.reference is None:
        return [(rate, None) for rate in RATES]
    probabilities = membership_of(study, configuration).probabilities(family.reference)
    ranked = sorted((min(1.0, p), event.id) for p, event in zip(probabilities, family.events, strict=True))
    named: dict[float, str | None] = {}
    for quarter in range(5):
        rate, name = ranked[round(quarter * (len(ranked) - 1) / 4)]
        named.setdefault(rate, name)
    return list(named.items())


def power_table(study: Study) -> list[PowerRow]:
    """One row for each configuration that is drawn and representative base rate, in protocol order."""
    plan = study.protocol.power
    witnesses = study.protocol.decision.rule == "channel-S"
    done: dict[tuple[Design, float], tuple[float | None, float | None]] = {}
    rows = []
    for configuration in study.protocol.drawn():
        design = design_of(study, configuration)
        bound = witnesses and bool(configuration.predicates)
        for rate, name in base_rates(study, configuration):
            if (design, rate) not in done:
                rejection = Rejection(design, rate)
                fits = rate + plan.gap <= 1
                done[design, rate] = (
                    _detectable(rejection, rate, plan.target),
                    rejection.power(rate + plan.gap) if fits else None,
                )
            gap, power = done[design, rate]
            rows.append(
                PowerRow(
                    configuration=configuration.id,
                    base_rate=rate,
                    base_event=name,
                    detectable_gap=gap,
                    planned_gap=plan.gap,
                    power_at_planned_gap=power,
                    planned_witness=plan.witness,
                    witness_power=witness_power(plan.witness, design.n_on) if bound else None,
                    detectable_witness=detectable_witness(design.n_on, plan.target) if bound else None,
                    target=plan.target,
                    level=design.level,
                )
            )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Whether a configuration's decision can go either way, whatever the engine does."""

    configuration: str
    rejection: Literal["bound", "witness", "both", "none"]
    """By what FAILS (or DIFFERS) can be reached."""
    largest_gap: float
    """L of all test-arm draws minus U of no reference-arm draw: no D exceeds it."""
    exercised: bool
    """Whether the test arm proposes anything; without that channel-S is INCONCLUSIVE at best."""
    acceptance: bool
    """Whether NOT_REJECTED is reached when both arms draw their expected counts."""
    expected_gap: float
    """D at the expected counts, to the nearest draw."""
    expected_violations: int
    """Violations in the reference arm at the expected counts: any makes the configuration VOID."""
    inconclusive: tuple[Literal["nothing-proposed", "ceiling"], ...]
    """The reasons for which it can be INCONCLUSIVE."""


def reach_of(study: Study, configuration: Configuration) -> Reach:
    """Whether both FAILS (or DIFFERS) and NOT_REJECTED can be reached by one configuration."""
    protocol = study.protocol
    family = study.events.configurations[configuration.id]
    design = design_of(study, configuration)
    channel_s = protocol.decision.rule == "channel-S"
    largest = lower(design.n_on, design.n_on, design.level) - upper(0, design.n_off, design.level)
    by_bound = largest > design.threshold
    by_witness = channel_s and bool(configuration.predicates)
    violations = 0
    rates = np.array(RATES)
    if family.reference is not None:
        member = membership_of(study, configuration)
        rates = np.array(member.probabilities(family.reference))
        broken = math.fsum(m.p for m in family.reference if member.violated(m.outcome))
        violations = round(broken * design.n_off) if channel_s else 0
    k_off, k_on = (np.clip(np.rint(rates * n), 0, n) for n in (design.n_off, design.n_on))
    gaps = lowers(k_on, design.n_on, design.level) - uppers(k_off, design.n_off, design.level)
    complements = lowers(k_off, design.n_off, design.level) - uppers(k_on, design.n_on, design.level)
    expected = float(max(gaps.max(), complements.max()))
    return Reach(
        configuration=configuration.id,
        rejection=("both" if by_witness else "bound") if by_bound else ("witness" if by_witness else "none"),
        largest_gap=largest,
        exercised=not channel_s or (configuration.drafter is not None and protocol.test_arm.speculation),
        acceptance=violations == 0 and expected <= design.threshold,
        expected_gap=expected,
        expected_violations=violations,
        inconclusive=_inconclusive(study),
    )


def _inconclusive(study: Study) -> tuple[Literal["nothing-proposed", "ceiling"], ...]:
    found: list[Literal["nothing-proposed", "ceiling"]] = []
    if study.protocol.decision.rule == "channel-S":
        found.append("nothing-proposed")
    if study.protocol.ceilings.on_ceiling == "INCONCLUSIVE":
        found.append("ceiling")
    return tuple(found)


def reach_table(study: Study) -> list[Reach]:
    """The reach of every configuration that is drawn, in protocol order."""
    return [reach_of(study, configuration) for configuration in study.protocol.drawn()]
