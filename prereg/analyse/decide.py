"""The sealed decision rules (docs/formats.md sections 10, 12 and 14; paper §4.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from prereg.analyse.events import Counted, count
from prereg.analyse.gap import Candidate, largest
from prereg.analyse.mechanism import compatible
from prereg.analyse.predictions import judge
from prereg.analyse.premise import try_premise
from prereg.analyse.records import decide_records
from prereg.analyse.tally import Tally
from prereg.analyse.trees import decide_trees
from prereg.analyse.tries import NO_TRIES, Tries, told
from prereg.analyse.units import units_of
from prereg.errors import EvidenceIncomplete, VerificationFailed
from prereg.model.beside import Exposure
from prereg.model.exact import ExactDecisions
from prereg.model.law import CrashEvent, Event
from prereg.model.study import Configuration, DecisionRule, Protocol, Study
from prereg.model.tree import UnitTree
from prereg.model.verdict import BoundRow, Calibration, Decision, Decisions, PerArm, Reason, Verdict
from prereg.stats.budget import Budget, budget_of
from prereg.stats.exact import lowers, uppers
from prereg.stats.gap import gap_of

NO_TREES: Mapping[str, UnitTree] = {}


def decide(
    study: Study,
    seal: str,
    tallies: Mapping[str, Tally],
    lost: Collection[str],
    trees: Mapping[str, UnitTree] = NO_TREES,
    tries: Tries = NO_TRIES,
) -> Decisions:
    """Apply the sealed rules to the tallies and the trees of a study's units.

    `tallies` and `trees` are by unit id, of the attempt that counts; `lost` holds the units that are INVALID
    by the ledger, whose records are not used, `tries` what it tells of attempts (edition 3). A unit in none
    of them, or one with fewer draws than planned, is missing: with `missing` = `bound` it counts as INVALID,
    else EvidenceIncomplete names it.
    """
    protocol = study.protocol
    gone = frozenset(lost) | _missing(protocol, tallies, trees, lost)
    drawn = protocol.drawn()
    decided = [_decide_one(study, configuration, tallies, gone) for configuration in drawn]
    exact = _decide_exact(study, tallies, trees, gone)
    decisions = Decisions(
        study=protocol.study,
        seal=seal,
        rules=1,
        alpha=protocol.alpha,
        m=len(drawn),
        configurations=tuple(decided),
        predictions=judge(
            study,
            {d.id: d for d in decided},
            {} if exact is None else {d.id: d for d in exact.configurations},
        ),
        exact=exact,
    )
    return told(protocol, decisions, tries, gone)


def _decide_exact(
    study: Study, tallies: Mapping[str, Tally], trees: Mapping[str, UnitTree], gone: frozenset[str]
) -> ExactDecisions | None:
    plan = study.protocol.exact
    if plan is None:
        return None
    decisions, laws = decide_trees(study, trees, gone)
    return ExactDecisions(
        tolerance=plan.tolerance,
        configurations=decisions,
        premise=try_premise(study, decisions, tallies, laws, gone),
    )


def _missing(
    protocol: Protocol,
    tallies: Mapping[str, Tally],
    trees: Mapping[str, UnitTree],
    lost: Collection[str],
) -> frozenset[str]:
    found = set()
    for unit in protocol.units():
        if unit.id in lost:
            continue
        if protocol.is_exact(unit):
            have, need, what = int(unit.id in trees), 1, "no tree"
        else:
            have = tallies[unit.id].draws if unit.id in tallies else 0
            need = protocol.sampling_of(unit).draws
            what = f"{have} of its {need} draws"
        if have > need:
            raise VerificationFailed(f"{have} draws where {need} are planned", where=f"records/{unit.id}")
        if have == need:
            continue
        if protocol.missing == "refuse":
            raise EvidenceIncomplete(
                f"unit {unit.id} has {what}, and the protocol refuses a missing unit",
                where=f"records/{unit.id}",
                next_step=f"prereg collect studies/{protocol.study}",
            )
        found.add(unit.id)
    return frozenset(found)


def _decide_one(
    study: Study, configuration: Configuration, tallies: Mapping[str, Tally], gone: frozenset[str]
) -> Decision:
    protocol = study.protocol
    off_id, on_id = units_of(protocol, configuration, "draws")
    off = None if off_id in gone else tallies[off_id]
    on = None if on_id in gone else tallies[on_id]
    budget = budget_of(study, configuration.id)
    if off is None or on is None:
        decision = _invalid(protocol, configuration, budget, off, on)
    else:
        decision = _by_outcomes(study, configuration, budget, off, on)
    if not protocol.since(2):
        return decision
    return replace(
        decision,
        exposed=Exposure(draws=None if on is None else on.exposed),
        records=decide_records(study, configuration, off, on, budget.level, decision.verdict),
        hypothesis=compatible(study, configuration, on, decision.verdict),
    )


def _by_outcomes(
    study: Study, configuration: Configuration, budget: Budget, off: Tally, on: Tally
) -> Decision:
    protocol = study.protocol
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


def _largest_gap(rows: tuple[BoundRow, ...]) -> Candidate:
    return largest(
        Candidate(value=gap_of(row, side), event=row.event, complement=side)
        for row in rows
        for side in (False, True)
    )


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
            excesses.append(Candidate(value=bound - p, event=row.event, complement=side))
            exceeded |= bound > p + allowance
    worst = largest(excesses)
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
