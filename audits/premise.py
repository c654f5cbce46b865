"""Step 11 for the premise of the exact stage: whether the draws are draws from the law of the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from audits.decide import law_of
from audits.interval import lower, upper
from audits.law import Law
from audits.records import Records, Tally
from audits.study import Study
from audits.tree import CLOSE, Arm, clip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One configuration's test of the premise."""

    row: dict[str, Any]
    """As ``decisions.json`` says it."""
    excesses: dict[str, dict[str, float]]
    """By arm (``off``, ``on``), the excess of each listed event; empty where nothing was tested."""


def _excess(law: Law, event: dict[str, Any], arm: Arm, tally: Tally, level: float) -> float:
    count, mass = law.count(event, tally.outcomes), arm.mass(law, event)
    above = lower(count, tally.draws, level) - mass - arm.slack
    return max(above, mass - upper(count, tally.draws, level))


def derive_premise(
    study: Study,
    records: Records,
    configuration: dict[str, Any],
    arms: tuple[Arm | None, Arm | None],
    verdict: str,
) -> Tested:
    """Test one configuration, whose exact verdict is ``verdict``, by the draws of its two arms."""
    law = law_of(study, configuration)
    alpha = float(study.protocol["exact"]["premise_alpha"])
    level = alpha / (len(study.tested) * 4 * len(law.events))
    row: dict[str, Any] = {"id": configuration["id"], "level": level, "off": None, "on": None}
    drawn = study.pair(configuration["id"], "draws")
    if None in arms or any(unit in records.lost for unit in drawn):
        return Tested(row=row | {"status": "INVALID", "reasons": ["unit-lost"]}, excesses={})
    if verdict == "VOID":
        return Tested(row=row | {"status": "NOT_TESTED", "reasons": ["not-admitted"]}, excesses={})
    excesses: dict[str, dict[str, float]] = {}
    outside = beyond = False
    for key, arm, unit in zip(("off", "on"), arms, drawn, strict=True):
        assert arm is not None
        tally = records.tallies[unit]
        strange = sum(n for outcome, n in tally.outcomes.items() if outcome not in arm.masses)
        excesses[key] = {event["id"]: _excess(law, event, arm, tally, level) for event in law.events}
        worst = max(excesses[key], key=excesses[key].__getitem__)
        excess = excesses[key][worst]
        row[key] = {
            "draws": tally.draws,
            "outside": 0 if arm.tree.meta["unexplored"] > 0 else strange,
            "excess": clip(excess, -1.0),
            "event": worst,
        }
        outside, beyond = outside or row[key]["outside"] > 0, beyond or excess > CLOSE
    reasons = [name for name, holds in (("outside-law", outside), ("bound", beyond)) if holds]
    row |= {"status": "FAILS" if reasons else "NOT_REJECTED", "reasons": reasons or ["none"]}
    return Tested(row=row, excesses=excesses)
