"""Step 11: every configuration's decision, derived again from its authenticated records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from audits.channel_r import record_events
from audits.channel_r_decide import decide_records
from audits.compatible import by_draws
from audits.interval import of_both
from audits.law import Law
from audits.records import Records, Tally
from audits.study import Study


@dataclass(frozen=True, slots=True)
class Member:
    """One event of the complement-closed family, with what was found of it."""

    event: str
    complement: bool
    crash_free: bool
    gap: float
    """L_on - U_off."""
    excess: float
    """L_off - P; without a reference it means nothing."""
    low_off: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One configuration's decision, and the family it rests on."""

    row: dict[str, Any]
    """As ``decisions.json`` says it."""
    family: tuple[Member, ...] = ()
    """Empty for an INVALID configuration."""
    attained: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    """By a member of the row and the key in it that names an event: the value of each event there was."""


def family(law: Law, bounds: list[dict[str, Any]]) -> Iterator[Member]:
    """The listed events in order, each followed by its complement."""
    for event, bound in zip(law.events, bounds, strict=True):
        p, crash = bound["p"] or 0.0, event["kind"] == "crash"
        low, high = bound["L_off"], bound["U_off"]
        yield Member(event["id"], False, not crash, bound["L_on"] - high, low - p, low, p)
        other = 1.0 - high
        gap = (1.0 - bound["U_on"]) - (1.0 - low)
        yield Member(event["id"], True, crash, gap, other - (1.0 - p), other, 1.0 - p)


def law_of(study: Study, configuration: dict[str, Any]) -> Law:
    """The sealed events, reference and predicates of a configuration."""
    sealed = study.events[configuration["id"]]
    rules = {name: study.predicates[name] for name in configuration["predicates"]}
    return Law(sealed["events"], sealed["reference"], rules)


def decide(study: Study, records: Records, configuration: dict[str, Any]) -> Derived:
    """Apply the sealed rule to one configuration."""
    name = configuration["id"]
    off_id, on_id = study.pair(name, "draws")
    law = law_of(study, configuration)
    count = 4 * (len(law.events) + len(record_events(configuration)))
    level = study.protocol["alpha"] / (len(study.drawn) * count)
    off = None if off_id in records.lost else records.tallies[off_id]
    on = None if on_id in records.lost else records.tallies[on_id]
    row: dict[str, Any] = {
        "id": name,
        "rule": study.protocol["decision"]["rule"],
        "B": count,
        "level": level,
        "draws": {"off": off and off.draws, "on": on and on.draws},
        "crashes": {"off": off and law.crashes(off.outcomes), "on": on and law.crashes(on.outcomes)},
        "proposals": on and on.proposals,
        "verifications": on and on.verifications,
        "accepted": on and on.accepted,
    }
    if off is None or on is None:
        row |= {"verdict": "INVALID", "reasons": ["unit-lost"], "D": None, "D_event": None, "bounds": []}
        row |= {"D_complement": None, "eligible": False, "witnesses": [], "calibration": None}
        derived = Derived(row=row)
    else:
        derived = _decide(study, law, row, off, on)
    return derived if study.edition < 2 else _second(study, configuration, law, derived, off, on)


def _second(
    study: Study,
    configuration: dict[str, Any],
    law: Law,
    derived: Derived,
    off: Tally | None,
    on: Tally | None,
) -> Derived:
    """What a decision of edition 2 has besides."""
    name, row = configuration["id"], derived.row
    attained: dict[tuple[str, str], dict[str, float]] = {}
    extra: dict[str, Any] = {"exposed": on and on.exposed}
    if "records" in configuration:
        extra["records"], gaps = decide_records(configuration, row, off, on)
        attained["records", "D_event"] = gaps
    if name in study.registered:
        extra["hypothesis"], excesses = by_draws(study, name, law, on, row["verdict"])
        attained |= {("hypothesis", key): values for key, values in excesses.items()}
    return replace(derived, row=row | extra, attained=attained)


def _decide(study: Study, law: Law, row: dict[str, Any], off: Tally, on: Tally) -> Derived:
    rule = study.protocol["decision"]
    bounds = [_bound(law, event, off, on, row["level"]) for event in law.events]
    members = tuple(family(law, bounds))
    largest = max(members, key=lambda member: member.gap)
    witnesses = law.witnesses(off.outcomes, on.outcomes)
    violations = law.violations(off.outcomes)
    allowance = rule["calibration_allowance"]
    excess = (
        law.has_reference
        and allowance is not None
        and any(member.low_off > member.p + allowance for member in members)
    )
    above = largest.gap > rule["threshold"]
    if rule["rule"] == "channel-S":
        verdict, reasons = _channel(violations > 0, excess, on.proposals, bool(witnesses), above)
    else:
        verdict, reasons = ("DIFFERS", ["bound"]) if above else ("NOT_REJECTED", ["none"])
    clean = any(member.crash_free and member.gap > rule["threshold"] for member in members)
    row |= {
        "verdict": verdict,
        "reasons": reasons,
        "D": largest.gap,
        "D_event": largest.event,
        "D_complement": largest.complement,
        "eligible": verdict in ("FAILS", "DIFFERS") and (bool(witnesses) or clean),
        "witnesses": witnesses,
        "calibration": None,
        "bounds": bounds,
    }
    if law.has_reference:
        worst = max(members, key=lambda member: member.excess)
        row["calibration"] = {
            "passed": violations == 0 and not excess,
            "violations": violations,
            "excess": worst.excess,
            "event": worst.event,
            "complement": worst.complement,
        }
    return Derived(row=row, family=members)


def _bound(law: Law, event: dict[str, Any], off: Tally, on: Tally, level: float) -> dict[str, Any]:
    k_off, k_on = law.count(event, off.outcomes), law.count(event, on.outcomes)
    return {
        "event": event["id"],
        "p": law.probability(event),
        **of_both(k_off, off.draws, k_on, on.draws, level),
    }


def _channel(
    violation: bool, excess: bool, proposals: int, witness: bool, above: bool
) -> tuple[str, list[str]]:
    """Channel S: the first rule that applies, and all of its reasons that do."""
    if violation or excess:
        both = (("off-arm-violation", violation), ("calibration-excess", excess))
        return "VOID", [reason for reason, holds in both if holds]
    if proposals == 0:
        return "INCONCLUSIVE", ["nothing-proposed"]
    if witness or above:
        return "FAILS", [reason for reason, holds in (("witness", witness), ("bound", above)) if holds]
    return "NOT_REJECTED", ["none"]
