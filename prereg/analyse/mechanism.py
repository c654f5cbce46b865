"""A registered mechanism beside what was seen (docs/formats.md section 15; paper §4.3).

Compatible means consistent with this one mechanism; others are not excluded. None of this moves a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prereg.analyse.gap import Candidate, largest
from prereg.analyse.laws import ArmLaw
from prereg.analyse.tally import Tally
from prereg.model.beside import Compatibility, CompatibilityStatus, DistanceStatus, MechanismDistance
from prereg.model.exact import ExactStageVerdict
from prereg.model.law import Mass
from prereg.model.study import Configuration, Study
from prereg.model.verdict import Verdict
from prereg.stats.budget import hypothesis_level
from prereg.stats.exact import lowers, uppers
from prereg.stats.membership import Membership, key, membership_of, reference_masses


def compatible(
    study: Study, configuration: Configuration, on: Tally | None, verdict: Verdict
) -> Compatibility | None:
    """Whether the on arm's draws are consistent with the registered mechanism; None where none is.

    `on` is None for a lost unit; `verdict` is what channel S says of the configuration.
    """
    family = study.events.configurations[configuration.id]
    plan, given = study.protocol.hypotheses, family.hypothesis
    if given is None:
        return None
    assert plan is not None and family.reference is not None
    level = hypothesis_level(study, configuration.id)
    if verdict == "INVALID":
        return _lost(given.id, level)
    assert on is not None
    member = membership_of(study, configuration)
    counts = member.totals(on.outcomes)
    low, high = lowers(counts, on.draws, level).tolist(), uppers(counts, on.draws, level).tolist()
    fit, null = (_fit(law, member, low, high, on) for law in (given.law, family.reference))
    return Compatibility(
        id=given.id,
        status=_status(verdict, fit.rejected(plan.allowance)),
        level=level,
        excess=fit.worst.value,
        event=fit.worst.event,
        impossible=fit.impossible,
        null_rejected=null.rejected(plan.allowance),
        null_excess=null.worst.value,
        null_event=null.worst.event,
        null_impossible=null.impossible,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """Draws beside one law."""

    worst: Candidate
    """The bound that lies furthest beyond the law's probability of its event."""
    impossible: int
    """Draws of probability 0."""

    def rejected(self, allowance: float) -> bool:
        return self.worst.value > allowance or self.impossible > 0


def _fit(law: Sequence[Mass], member: Membership, low: list[float], high: list[float], on: Tally) -> _Fit:
    rows = zip(member.events, member.probabilities(law), low, high, strict=True)
    single = reference_masses(law)
    return _Fit(
        worst=largest(
            Candidate(value=max(a - min(1.0, p), min(1.0, p) - b), event=event.id) for event, p, a, b in rows
        ),
        impossible=sum(n for outcome, n in on.outcomes if single.get(key(outcome), 0.0) == 0.0),
    )


def _status(verdict: Verdict, rejected: bool) -> CompatibilityStatus:
    if verdict == "VOID":
        return "VOID"
    return "NOT_COMPATIBLE" if rejected else "COMPATIBLE"


def _lost(name: str, level: float) -> Compatibility:
    return Compatibility(
        id=name,
        status="INVALID",
        level=level,
        excess=None,
        event=None,
        impossible=None,
        null_rejected=None,
        null_excess=None,
        null_event=None,
        null_impossible=None,
    )


def distance(
    study: Study, configuration: Configuration, on: ArmLaw | None, verdict: ExactStageVerdict
) -> MechanismDistance | None:
    """How far the on arm's tree is from the registered mechanism's law and from P; None where none is.

    `on` is None for a lost unit; `verdict` is that of the exact stage.
    """
    family = study.events.configurations[configuration.id]
    given = family.hypothesis
    if given is None:
        return None
    if verdict == "INVALID":
        return MechanismDistance(
            id=given.id,
            status="INVALID",
            tv_lower=None,
            tv_upper=None,
            null_tv_lower=None,
            null_tv_upper=None,
        )
    assert on is not None and study.protocol.exact is not None and family.reference is not None
    lower, upper = tv_to(given.law, on)
    null_lower, null_upper = tv_to(family.reference, on)
    return MechanismDistance(
        id=given.id,
        status=_distance_status(verdict, lower, upper, study.protocol.exact.tolerance),
        tv_lower=min(1.0, lower),
        tv_upper=upper,
        null_tv_lower=min(1.0, null_lower),
        null_tv_upper=null_upper,
    )


def tv_to(law: Iterable[Mass], on: ArmLaw) -> tuple[float, float]:
    """Where the total variation between a law and a tree's whole law lies, whatever is unexplored.

    What the law is short of 1 may lie on any outcome.
    """
    rows = list(law)
    short = max(0.0, 1.0 - math.fsum(mass.p for mass in rows))
    above = math.fsum(max(0.0, mass.p - on.mass.get(mass.outcome, 0.0)) for mass in rows)
    return max(0.0, above - on.slack), min(1.0, above + short)


def _distance_status(
    verdict: ExactStageVerdict, lower: float, upper: float, tolerance: float
) -> DistanceStatus:
    if verdict == "VOID":
        return "VOID"
    if lower > tolerance:
        return "DEPARTS"
    return "MATCHES" if upper <= tolerance else "INCONCLUSIVE"
