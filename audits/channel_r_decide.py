"""Step 11, section 16: the verdict on the records beside the tokens of one configuration."""

from __future__ import annotations

from typing import Any

from audits.channel_r import record_events
from audits.interval import of_both
from audits.records import Tally


def _count(event: str, tally: Tally) -> int:
    if event == "any":
        return tally.mismatches.total()
    position = int(event.removeprefix("position-"))
    return sum(n for positions, n in tally.mismatches.items() if position in positions)


def _bound(event: str, off: Tally, on: Tally, level: float) -> dict[str, Any]:
    k_off, k_on = _count(event, off), _count(event, on)
    return {
        "event": event,
        **of_both(k_off, off.draws, k_on, on.draws, level),
    }


def decide_records(
    configuration: dict[str, Any], decision: dict[str, Any], off: Tally | None, on: Tally | None
) -> tuple[dict[str, Any], dict[str, float]]:
    """``records`` of a configuration's decision, of which the rest stands; and each event's gap."""
    nothing: dict[str, Any] = {"D": None, "D_event": None, "bounds": []}
    events = record_events(configuration)
    if not events:
        return {"verdict": "INCOMPLETE", "reasons": ["no-reference"], **nothing}, {}
    if off is None or on is None:
        return {"verdict": "INVALID", "reasons": ["unit-lost"], **nothing}, {}
    bounds = [_bound(event, off, on, decision["level"]) for event in events]
    gaps = {bound["event"]: bound["L_on"] - bound["U_off"] for bound in bounds}
    largest = max(gaps, key=gaps.__getitem__)
    if decision["verdict"] == "VOID":
        verdict, reason = "VOID", "calibration"
    elif on.proposals == 0:
        verdict, reason = "INCONCLUSIVE", "nothing-proposed"
    elif gaps[largest] > 0.0:
        verdict, reason = "FAILS", "mismatch"
    else:
        verdict, reason = "NOT_REJECTED", "none"
    row = {"verdict": verdict, "reasons": [reason], "bounds": bounds}
    return row | {"D": gaps[largest], "D_event": largest}, gaps
