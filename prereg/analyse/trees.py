"""The decision on each configuration of the exact stage (docs/formats.md section 14)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from prereg.analyse.gap import Candidate, largest
from prereg.analyse.laws import (
    ArmLaw,
    Grounds,
    arm_law,
    oracle_difference,
    tv_interval,
    verdict_of,
    witness_mass,
    witnesses_of,
)
from prereg.analyse.mechanism import distance
from prereg.analyse.units import units_of
from prereg.model.arms import PerArm, Shares
from prereg.model.exact import EventMasses, ExactDecision, OracleGap
from prereg.model.study import Configuration, Study
from prereg.model.tree import TreeAdmission, UnitTree
from prereg.stats.membership import membership_of, predicates_of


def decide_trees(
    study: Study, trees: Mapping[str, UnitTree], lost: Collection[str]
) -> tuple[tuple[ExactDecision, ...], dict[str, ArmLaw]]:
    """The decisions in the order of the exact stage, and the law of each unit that is not lost, by unit id.

    A unit in `lost` is not used; every other unit of the stage must have its tree.
    """
    protocol = study.protocol
    laws = {
        unit.id: arm_law(trees[unit.id]) for unit in protocol.units(channel="exact") if unit.id not in lost
    }
    decisions = []
    for configuration in protocol.walked():
        off_id, on_id = units_of(protocol, configuration, "exact")
        off, on = laws.get(off_id), laws.get(on_id)
        if off is None or on is None:
            decision = _lost(configuration.id, off, on)
        else:
            admitted = admits(trees[off_id].meta.admission) and admits(trees[on_id].meta.admission)
            decision = _decide(study, configuration, off, on, admitted)
        away = distance(study, configuration, on, decision.verdict)
        decisions.append(replace(decision, hypothesis=away))
    return tuple(decisions), laws


def admits(admission: TreeAdmission) -> bool:
    """Whether every check passed, and each looked at something.

    Those of replay and interference always have something to look at, the others where some leaf could have
    been looked at: a check that applied to nothing is none.
    """
    checks = (
        admission.walk,
        admission.replay,
        admission.refill,
        admission.closed,
        admission.randomness,
        admission.interference,
    )
    return (
        all(check.ok for check in checks)
        and admission.replay.checked > 0
        and admission.interference.checked > 0
        and (admission.refill.checked > 0 or admission.refill.eligible == 0)
        and (admission.closed.checked > 0 or admission.closed.closed == 0)
    )


def _decide(
    study: Study, configuration: Configuration, off: ArmLaw, on: ArmLaw, admitted: bool
) -> ExactDecision:
    assert study.protocol.exact is not None
    reference = study.events.configurations[configuration.id].reference
    oracle = None
    if reference is not None:
        oracle = OracleGap(outcomes=len(reference), largest=_cut(oracle_difference(off, reference)))
    witnesses = witnesses_of(off, on, predicates_of(study, configuration))
    lower, upper = tv_interval(off, on)
    verdict, reasons = verdict_of(
        off,
        on,
        Grounds(
            admitted=admitted,
            oracle=None if oracle is None else oracle.largest,
            interval=(lower, upper),
            witness=bool(witnesses),
            tolerance=study.protocol.exact.tolerance,
        ),
    )
    masses = event_masses(study, configuration, off, on)
    gap = _largest_gap(masses, off.slack, on.slack)
    return ExactDecision(
        id=configuration.id,
        verdict=verdict,
        reasons=reasons,
        tv_lower=_cut(lower),
        tv_upper=upper,
        unexplored=Shares(off=off.slack, on=on.slack),
        runs=PerArm(off=off.runs, on=on.runs),
        leaves=PerArm(off=off.leaves, on=on.leaves),
        outcomes=PerArm(off=len(off.mass), on=len(on.mass)),
        proposals=on.proposals,
        verifications=on.verifications,
        accepted=on.accepted,
        crash_mass=Shares(off=_cut(off.crash_mass), on=_cut(on.crash_mass)),
        D=max(-1.0, _cut(gap.value)),
        D_event=gap.event,
        D_complement=gap.complement,
        witness_mass=_cut(witness_mass(witnesses)),
        witnesses=tuple(replace(w, p=_cut(w.p)) for w in witnesses),
        oracle=oracle,
        masses=tuple(replace(row, off=_cut(row.off), on=_cut(row.on)) for row in masses),
    )


def _cut(value: float) -> float:
    """At most 1: what rounding, or leaves that are no tree, bring beyond it is written as 1."""
    return min(1.0, value)


def event_masses(
    study: Study, configuration: Configuration, off: ArmLaw, on: ArmLaw
) -> tuple[EventMasses, ...]:
    """The masses of the listed events, in order; not cut to 1."""
    family = study.events.configurations[configuration.id]
    member = membership_of(study, configuration)
    p: list[float] | list[None] = (
        [None] * len(family.events) if family.reference is None else member.probabilities(family.reference)
    )
    rows = zip(
        family.events, p, member.probabilities(off.masses()), member.probabilities(on.masses()), strict=True
    )
    return tuple(
        EventMasses(event=event.id, p=None if q is None else _cut(q), off=a, on=b) for event, q, a, b in rows
    )


def _largest_gap(masses: tuple[EventMasses, ...], s: float, t: float) -> Candidate:
    """The largest lower bound on mu_on(A) - mu_off(A) over the listed events and their complements."""
    return largest(
        Candidate(value=gap, event=row.event, complement=complement)
        for row in masses
        for complement, gap in ((False, row.on - row.off - s), (True, row.off - row.on - t))
    )


def _lost(name: str, off: ArmLaw | None, on: ArmLaw | None) -> ExactDecision:
    """A configuration that lost a unit: whatever rests on the loss is None."""
    return ExactDecision(
        id=name,
        verdict="INVALID",
        reasons=("unit-lost",),
        tv_lower=None,
        tv_upper=None,
        unexplored=Shares(off=None if off is None else off.slack, on=None if on is None else on.slack),
        runs=PerArm(off=None if off is None else off.runs, on=None if on is None else on.runs),
        leaves=PerArm(off=None if off is None else off.leaves, on=None if on is None else on.leaves),
        outcomes=PerArm(off=None if off is None else len(off.mass), on=None if on is None else len(on.mass)),
        proposals=None,
        verifications=None,
        accepted=None,
        crash_mass=Shares(
            off=None if off is None else _cut(off.crash_mass), on=None if on is None else _cut(on.crash_mass)
        ),
        D=None,
        D_event=None,
        D_complement=None,
        witness_mass=None,
        witnesses=(),
        oracle=None,
        masses=(),
    )
