"""Step 11 for the exact stage: every configuration's verdict, derived again from its authenticated leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from audits.compatible import exactly
from audits.decide import Derived, Member, law_of
from audits.law import Law
from audits.records import Records
from audits.study import Study
from audits.tree import Arm, arm_of, clip, is_tree

ORACLE = 1e-6
"""How far the off arm's law may be from the reference."""
_NUMBERS = ("tv_lower", "tv_upper", "proposals", "verifications", "accepted", "D", "witness_mass")


def arms_of(study: Study, records: Records, name: str) -> tuple[Arm | None, Arm | None]:
    """The laws of a configuration's two arms; None for a lost one."""
    off, on = study.pair(name, "exact")
    return (
        None if off in records.lost else arm_of(records.trees[off]),
        None if on in records.lost else arm_of(records.trees[on]),
    )


def decide_exact(study: Study, configuration: dict[str, Any], arms: tuple[Arm | None, Arm | None]) -> Derived:
    """Apply section 14 to one configuration."""
    off, on = arms
    law = law_of(study, configuration)

    def each(number: Callable[[Arm], Any]) -> dict[str, Any]:
        return {"off": None if off is None else number(off), "on": None if on is None else number(on)}

    row: dict[str, Any] = {
        "id": configuration["id"],
        "unexplored": each(lambda arm: clip(arm.slack)),
        "runs": each(lambda arm: arm.tree.meta["runs"]),
        "leaves": each(lambda arm: len(arm.tree.leaves)),
        "outcomes": each(lambda arm: len(arm.masses)),
        "crash_mass": each(lambda arm: clip(_crash_mass(law, arm))),
    }
    if off is None or on is None:
        row |= dict.fromkeys(_NUMBERS) | {"verdict": "INVALID", "reasons": ["unit-lost"], "oracle": None}
        row |= {"D_event": None, "D_complement": None, "witnesses": [], "masses": []}
        derived = Derived(row=row)
    else:
        derived = _decide(law, row, off, on, float(study.protocol["exact"]["tolerance"]))
    if configuration["id"] in study.registered:
        verdict = derived.row["verdict"]
        derived.row["hypothesis"] = exactly(study, configuration["id"], law, on, verdict)
    return derived


def _crash_mass(law: Law, arm: Arm) -> float:
    return math.fsum(mass for outcome, mass in arm.masses.items() if "crash" in law.parsed(outcome))


def _decide(law: Law, row: dict[str, Any], off: Arm, on: Arm, tolerance: float) -> Derived:
    apart = math.fsum(max(0.0, mass - on.masses.get(outcome, 0.0)) for outcome, mass in off.masses.items())
    low, high = max(0.0, apart - on.slack), min(1.0, apart + off.slack)
    masses = [_masses(law, event, off, on) for event in law.events]
    members = _family(law, masses, off, on)
    largest = max(members, key=lambda member: member.gap)
    witnesses = _witnesses(law, off, on)
    oracle = _oracle(law, off)
    run = [leaf.counters for leaf in on.tree.leaves if not leaf.closed]
    proposals = sum(counters["proposals"] for counters in run)
    verdict, reasons = _verdict({
        "tree": not (is_tree(off.tree) and is_tree(on.tree)),
        "admission": not (off.admitted() and on.admitted()),
        "oracle": oracle is not None and oracle["largest"] > ORACLE,
        "nothing-proposed": proposals == 0,
        "total-variation": low > tolerance,
        "witness": bool(witnesses),
        "within-tolerance": high <= tolerance,
    })  # fmt: skip
    row |= {
        "verdict": verdict,
        "reasons": reasons,
        "tv_lower": clip(low),
        "tv_upper": clip(high),
        "proposals": proposals,
        "verifications": sum(counters["verifications"] for counters in run),
        "accepted": sum(counters["accepted"] for counters in run),
        "D": clip(largest.gap, -1.0),
        "D_event": largest.event,
        "D_complement": largest.complement,
        "witness_mass": clip(math.fsum({w["outcome"]: w["p"] for w in witnesses}.values())),
        "witnesses": [
            {"outcome": law.parsed(w["outcome"]), "predicate": w["predicate"], "p": clip(w["p"])}
            for w in witnesses
        ],
        "oracle": oracle and oracle | {"largest": clip(oracle["largest"])},
        "masses": [m | {arm: clip(m[arm]) for arm in ("off", "on")} for m in masses],
    }
    return Derived(row=row, family=members)


_ORDER = (
    ("VOID", ("tree", "admission", "oracle")),
    ("INCONCLUSIVE", ("nothing-proposed",)),
    ("DEPARTS", ("total-variation", "witness")),
    ("EQUAL_WITHIN_TOLERANCE", ("within-tolerance",)),
)
"""The verdicts in the order they are tried, each with its reasons."""


def _verdict(holds: dict[str, bool]) -> tuple[str, list[str]]:
    for verdict, reasons in _ORDER:
        if held := [reason for reason in reasons if holds[reason]]:
            return verdict, held
    return "INCONCLUSIVE", ["interval"]


def _masses(law: Law, event: dict[str, Any], off: Arm, on: Arm) -> dict[str, Any]:
    return {
        "event": event["id"],
        "p": law.probability(event),
        "off": off.mass(law, event),
        "on": on.mass(law, event),
    }


def _family(law: Law, masses: list[dict[str, Any]], off: Arm, on: Arm) -> tuple[Member, ...]:
    """The listed events in order, each followed by its complement, with the gap that is certain."""
    members: list[Member] = []
    for event, mass in zip(law.events, masses, strict=True):
        a, b, crash = mass["off"], mass["on"], event["kind"] == "crash"
        members.append(Member(event["id"], False, not crash, b - a - off.slack, 0.0, 0.0, 0.0))
        members.append(Member(event["id"], True, crash, a - b - on.slack, 0.0, 0.0, 0.0))
    return tuple(members)


def _witnesses(law: Law, off: Arm, on: Arm) -> list[dict[str, Any]]:
    """Outcomes (canonical bytes) that only the on arm has, and the predicates only it violates."""
    if not off.whole:
        return []
    spared = {name for outcome in off.masses for name in law.violated(outcome)}
    order = {name: i for i, name in enumerate(law.rules)}
    rows = [
        (-mass, outcome, order[name], name)
        for outcome, mass in on.masses.items()
        if outcome not in off.masses
        for name in law.violated(outcome)
        if name not in spared
    ]
    return [{"outcome": outcome, "predicate": name, "p": -less} for less, outcome, _, name in sorted(rows)]


def _oracle(law: Law, off: Arm) -> dict[str, Any] | None:
    if not law.has_reference:
        return None
    largest = 0.0
    for outcome in {*law.reference, *off.masses}:
        mass, p = off.masses.get(outcome, 0.0), law.probability_of(outcome)
        # What is unexplored may be this outcome: that excuses what it lacks, never what it has too much.
        largest = max(largest, mass - p, p - mass - off.slack)
    return {"outcomes": len(law.reference), "largest": largest}
