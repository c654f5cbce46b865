"""Step 11, section 15: whether what was drawn, and what was walked, is what a registered mechanism gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from audits.interval import lower, upper
from audits.law import Law
from audits.records import Tally
from audits.study import Study
from audits.tree import Arm, clip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How far draws are from one law."""

    excesses: dict[str, float]
    """By listed event, in order."""
    impossible: int
    """Draws to which the law gives nothing."""

    @property
    def event(self) -> str:
        """The event with the greatest excess, the first of equals."""
        return max(self.excesses, key=self.excesses.__getitem__)

    @property
    def excess(self) -> float:
        """The greatest excess."""
        return self.excesses[self.event]


def _fit(law: Law, tally: Tally, level: float) -> Fit:
    excesses: dict[str, float] = {}
    for event in law.events:
        count, p = law.count(event, tally.outcomes), law.probability(event)
        assert p is not None
        low, high = lower(count, tally.draws, level), upper(count, tally.draws, level)
        excesses[event["id"]] = max(low - p, p - high)
    strange = sum(n for outcome, n in tally.outcomes.items() if law.probability_of(outcome) == 0.0)
    return Fit(excesses=excesses, impossible=strange)


def _mechanism(study: Study, name: str, law: Law) -> Law:
    """mu_H with the events and predicates of the configuration."""
    return Law(law.events, study.events[name]["hypothesis"]["law"], law.rules)


def by_draws(
    study: Study, name: str, law: Law, on: Tally | None, verdict: str
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """``hypothesis`` of a decision whose verdict is ``verdict``, and the excess of each event by its key.

    ``law`` is P with the events of the configuration, ``on`` the draws of its on arm.
    """
    plan = study.protocol["hypotheses"]
    level = plan["alpha"] / (len(study.hypothesised) * 2 * len(law.events))
    row: dict[str, Any] = {"id": study.registered[name], "level": level}
    if verdict == "INVALID" or on is None:
        keys = ("excess", "event", "impossible")
        row |= dict.fromkeys([*keys, *(f"null_{key}" for key in keys), "null_rejected"])
        return row | {"status": "INVALID"}, {}
    own, null = _fit(_mechanism(study, name, law), on, level), _fit(law, on, level)

    def rejected(fit: Fit) -> bool:
        return fit.excess > plan["allowance"] or fit.impossible > 0

    status = "NOT_COMPATIBLE" if rejected(own) else "COMPATIBLE"
    row |= {"status": "VOID" if verdict == "VOID" else status, "null_rejected": rejected(null)}
    for prefix, fit in (("", own), ("null_", null)):
        row |= {
            f"{prefix}excess": fit.excess,
            f"{prefix}event": fit.event,
            f"{prefix}impossible": fit.impossible,
        }
    return row, {"event": own.excesses, "null_event": null.excesses}


def _variation(law: Mapping[bytes, float], on: Arm) -> tuple[float, float]:
    """Where the total variation between a law and the on arm's lies."""
    left = max(0.0, 1.0 - math.fsum(law.values()))
    apart = math.fsum(max(0.0, p - on.masses.get(outcome, 0.0)) for outcome, p in law.items())
    return max(0.0, apart - on.slack), min(1.0, apart + left)


def exactly(study: Study, name: str, law: Law, on: Arm | None, verdict: str) -> dict[str, Any]:
    """``hypothesis`` of an exact decision whose verdict is ``verdict``; ``law`` is P, ``on`` the on arm."""
    row: dict[str, Any] = {"id": study.registered[name]}
    if verdict == "INVALID" or on is None:
        keys = ("tv_lower", "tv_upper", "null_tv_lower", "null_tv_upper")
        return row | dict.fromkeys(keys) | {"status": "INVALID"}
    low, high = _variation(_mechanism(study, name, law).reference, on)
    null_low, null_high = _variation(law.reference, on)
    tolerance = float(study.protocol["exact"]["tolerance"])
    if verdict == "VOID":
        status = "VOID"
    elif low > tolerance:
        status = "DEPARTS"
    else:
        status = "MATCHES" if high <= tolerance else "INCONCLUSIVE"
    return row | {
        "status": status,
        "tv_lower": clip(low),
        "tv_upper": clip(high),
        "null_tv_lower": clip(null_low),
        "null_tv_upper": clip(null_high),
    }
