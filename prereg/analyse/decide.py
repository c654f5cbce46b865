"""The sealed decision rules (docs/formats.md sections 10 and 12; paper §4.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from prereg.analyse.events import Counted, count
from prereg.analyse.predictions import judge
from prereg.analyse.tally import Tally
from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.law import CrashEvent, Event
from prereg.model.study import Configuration, DecisionRule, Protocol, Study, Unit
from prereg.model.verdict import BoundRow, Calibration, Decision, Decisions, PerArm, Reason, Verdict
from prereg.stats.budget import Budget, budget_of
from prereg.stats.exact import lowers, uppers
from prereg.stats.gap import gap_of

TIE = 1e-11
"""Values closer than this are tied.

When an event and its opposite are both listed, each is the other's complement and the gaps are equal:
rounding must not choose between them.
"""


def decide(study: Study, seal: str, tallies: Mapping[str, Tally], lost: Collection[str]) -> Decisions:
    """Apply the sealed rules to the tallies of a study's units.

    `tallies` is by unit id; `lost` holds the units that the ledger names INVALID, whose tallies are not used.
    A unit in neither, or one with fewer draws than planned, is missing: with `missing` = `bound` it counts as
    INVALID, else EvidenceIncomplete names it.
    """
    protocol = study.protocol
    gone = frozenset(lost) | _missing(protocol, tallies, lost)
    decided = [_decide_one(study, configuration, tallies, gone) for configuration in protocol.configurations]
    return Decisions(
        study=protocol.study,
        seal=seal,
        rules=1,
        alpha=protocol.alpha,
        m=len(protocol.configurations),
        configurations=tuple(decided),
        predictions=judge(study, {d.id: d for d in decided}),
    )


def _missing(protocol: Protocol, tallies: Mapping[str, Tally], lost: Collection[str]) -> frozenset[str]:
    found = set()
    for unit in protocol.units():
        if unit.id in lost:
            continue
        have = tallies[unit.id].draws if unit.id in tallies else 0
        need = protocol.sampling[unit.arm].draws
        if have > need:
            raise VerificationFailed(f"{have} draws where {need} are planned", where=f"records/{unit.id}")
        if have == need:
            continue
        if protocol.missing == "refuse":
            raise EvidenceIncomplete(
                f"unit {unit.id} has {have} of its {need} draws, and the protocol refuses a missing unit",
                where=f"records/{unit.id}",
                next_step=f"prereg collect studies/{protocol.study}",
            )
        found.add(unit.id)
    return frozenset(found)


def _decide_one(
    study: Study, configuration: Configuration, tallies: Mapping[str, Tally], gone: frozenset[str]
) -> Decision:
    protocol = study.protocol
    stage = next(s.id for s in protocol.stages if configuration.id in s.configurations)
    off_id, on_id = (
        Unit(stage=stage, configuration=configuration.id, arm=arm.id).id
        for arm in (protocol.reference_arm, protocol.test_arm)
    )
    off = None if off_id in gone else tallies[off_id]
    on = None if on_id in gone else tallies[on_id]
    budget = budget_of(study, configuration.id)
    if off is None or on is None:
        return _invalid(protocol, configuration, budget, off, on)
    events = study.events.configurations[configuration.id].events
    counted = count(study, configuration, off, on)
    rows = _bounds(events, counted, budget.level, off.draws, on.draws)
    gap = _largest_gap(rows)
    calibration, excess = _calibrate(rows, counted, protocol.decision.calibration_allowance)
    threshold = protocol.decision.threshold
    verdict, reasons = _verdict(protocol.decision, counted, excess, on.proposals, gap.value)
    return Decision(
        id=configuration.id,
        rule=protocol.decision.rule,
        verdict=verdict,
        reasons=reasons,
        B=budget.B,
        level=budget.level,
        draws=PerArm(off=off.draws, on=on.draws),
        crashes=PerArm(off=off.crashes, on=on.crashes),
        proposals=on.proposals,
        verifications=on.verifications,
        accepted=on.accepted,
        D=gap.value,
        D_event=gap.event,
        D_complement=gap.complement,
        eligible=verdict in ("FAILS", "DIFFERS")
        and (bool(counted.witnesses) or _crash_free_gap(events, rows, threshold)),
        witnesses=counted.witnesses,
        calibration=calibration,
        bounds=rows,
    )


def _invalid(
    protocol: Protocol, configuration: Configuration, budget: Budget, off: Tally | None, on: Tally | None
) -> Decision:
    """A configuration that lost a unit: whatever rests on the loss is None."""
    return Decision(
        id=configuration.id,
        rule=protocol.decision.rule,
        verdict="INVALID",
        reasons=("unit-lost",),
        B=budget.B,
        level=budget.level,
        draws=PerArm(off=None if off is None else off.draws, on=None if on is None else on.draws),
        crashes=PerArm(off=None if off is None else off.crashes, on=None if on is None else on.crashes),
        proposals=None if on is None else on.proposals,
        verifications=None if on is None else on.verifications,
        accepted=None if on is None else on.accepted,
        D=None,
        D_event=None,
        D_complement=None,
        eligible=False,
        witnesses=(),
        calibration=None,
        bounds=(),
    )


def _bounds(
    events: tuple[Event, ...], counted: Counted, level: float, n_off: int, n_on: int
) -> tuple[BoundRow, ...]:
    p: tuple[float | None, ...] = counted.p if counted.p is not None else (None,) * len(events)
    columns = zip(
        events,
        p,
        counted.k_off,
        counted.k_on,
        lowers(counted.k_off, n_off, level).tolist(),
        uppers(counted.k_off, n_off, level).tolist(),
        lowers(counted.k_on, n_on, level).tolist(),
        uppers(counted.k_on, n_on, level).tolist(),
        strict=True,
    )
    return tuple(
        BoundRow(event=e.id, p=q, k_off=i, k_on=j, L_off=a, U_off=b, L_on=c, U_on=d)
        for e, q, i, j, a, b, c, d in columns
    )


@dataclass(frozen=True, slots=True)
class _Largest:
    """The largest of some value over the family, and the first event that has it."""

    value: float
    event: str
    complement: bool


def _largest(candidates: list[_Largest]) -> _Largest:
    """The first candidate that no other exceeds by more than a tie, with the largest value."""
    top = max(c.value for c in candidates)
    first = next(c for c in candidates if c.value >= top - TIE)
    return _Largest(top, first.event, first.complement)


def _largest_gap(rows: tuple[BoundRow, ...]) -> _Largest:
    return _largest([_Largest(gap_of(row, side), row.event, side) for row in rows for side in (False, True)])


def _calibrate(
    rows: tuple[BoundRow, ...], counted: Counted, allowance: float | None
) -> tuple[Calibration | None, bool]:
    """The reference arm against P, and whether some event's excess is above the allowance.

    None without a reference law or an allowance.
    """
    excesses = []
    exceeded = False
    for row in rows:
        if row.p is None or allowance is None:
            return None, False
        for bound, p, side in ((row.L_off, row.p, False), (1 - row.U_off, 1 - row.p, True)):
            excesses.append(_Largest(bound - p, row.event, side))
            exceeded |= bound > p + allowance
    worst = _largest(excesses)
    calibration = Calibration(
        passed=not exceeded and counted.violations == 0,
        violations=counted.violations,
        excess=worst.value,
        event=worst.event,
        complement=worst.complement,
    )
    return calibration, exceeded


def _verdict(
    rule: DecisionRule, counted: Counted, excess: bool, proposals: int, gap: float
) -> tuple[Verdict, tuple[Reason, ...]]:
    """The first verdict that applies, and every reason for it."""
    reasons: list[Reason] = []
    if rule.rule == "channel-S":
        if counted.violations:
            reasons.append("off-arm-violation")
        if excess:
            reasons.append("calibration-excess")
        if reasons:
            return "VOID", tuple(reasons)
        if proposals == 0:
            return "INCONCLUSIVE", ("nothing-proposed",)
        if counted.witnesses:
            reasons.append("witness")
    if gap > rule.threshold:
        reasons.append("bound")
    if reasons:
        return ("FAILS" if rule.rule == "channel-S" else "DIFFERS"), tuple(reasons)
    return "NOT_REJECTED", ("none",)


def _crash_free_gap(events: tuple[Event, ...], rows: tuple[BoundRow, ...], threshold: float) -> bool:
    """Whether some event that cannot contain a crash has a gap above the threshold."""
    return any(
        gap_of(row, complement=isinstance(event, CrashEvent)) > threshold
        for event, row in zip(events, rows, strict=True)
    )
