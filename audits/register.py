"""Step 5, section 15: the registered mechanism hypotheses, their laws and their events."""

from __future__ import annotations

import math
from typing import Any

from audits.fault import Found
from audits.jsonc import canonical
from audits.references import FILE, check_unique
from audits.study import Study

HYPOTHESES = "hypotheses.json"
EVENTS = "events.json"
SWITCH = 1e-12
"""How far a mechanism may be from P once every read that speculation moves has its logical value."""
SUM = 1e-9
"""How far the sum of a mechanism's law may be from 1."""


def check_registered(study: Study, file: dict[str, Any] | None, found: Found) -> None:
    """Everything section 15 asks of the sealed files; ``file`` is that of the hypotheses, or None."""
    rows: list[dict[str, Any]] = []
    if file is not None:
        rows, ids = file["configurations"], [item["id"] for item in file["hypotheses"]]
        check_unique(ids, HYPOTHESES, "/hypotheses", found)
        check_unique((row["configuration"] for row in rows), HYPOTHESES, "/configurations", found)
        for i, row in enumerate(rows):
            if row["hypothesis"] not in ids:
                what = f"{row['hypothesis']!r} is not among the hypotheses"
                found.fault(what, file=HYPOTHESES, pointer=f"/configurations/{i}/hypothesis")
            _check_row(study, row["configuration"], f"/configurations/{i}/configuration", found)
    if rows and study.protocol["decision"]["rule"] == "event-gap":
        found.fault("event-gap has no hypothesis", file=HYPOTHESES, pointer="/configurations")
    plan = study.protocol.get("hypotheses")
    if (plan is not None) != bool(rows):
        what = f"is there exactly when {HYPOTHESES} registers something"
        found.fault(what, file=FILE, pointer="/hypotheses")
    if plan is not None and (plan["alpha"] is None) != (not study.hypothesised):
        what = "is null exactly when no registered configuration is drawn"
        found.fault(what, file=FILE, pointer="/hypotheses/alpha")
    for name, sealed in study.events.items():
        _check_sealed(name, study.registered.get(name), sealed, found)


def _check_row(study: Study, name: str, at: str, found: Found) -> None:
    configuration = next((c for c in study.configurations if c["id"] == name), None)
    if configuration is None:
        found.fault(f"{name!r} is not a configuration", file=HYPOTHESES, pointer=at)
        return
    if study.events[name]["reference"] is None:
        found.fault(f"{name!r} has no reference", file=HYPOTHESES, pointer=at)
    if configuration["drafter"] is None:
        found.fault(f"{name!r} has no drafter", file=HYPOTHESES, pointer=at)


def _check_sealed(name: str, registered: str | None, sealed: dict[str, Any], found: Found) -> None:
    """One configuration of ``events.json``: its law, and the event of its hypothesis."""
    at = f"/configurations/{name}"
    own = sealed.get("hypothesis")
    if (own is not None) != (registered is not None):
        what = f"is there exactly for the configurations that {HYPOTHESES} lists"
        found.fault(what, file=EVENTS, pointer=f"{at}/hypothesis")
    sets = [
        (i, event)
        for i, event in enumerate(sealed["events"])
        if event["kind"] == "set" and event["hypothesis"] is not None
    ]
    for i, event in sets:
        if event["hypothesis"] != registered:
            what = f"{event['hypothesis']!r} is not registered for this configuration"
            found.fault(what, file=EVENTS, pointer=f"{at}/events/{i}/hypothesis")
    if own is None or registered is None:
        return
    if own["id"] != registered:
        what = f"is not the registered {registered!r}"
        found.fault(what, file=EVENTS, pointer=f"{at}/hypothesis/id")
    if own["switch"] > SWITCH:
        what = f"is more than {SWITCH}"
        found.fault(what, file=EVENTS, pointer=f"{at}/hypothesis/switch")
    _check_law(own["law"], sealed["events"], f"{at}/hypothesis/law", found)
    excess = _above(own["law"], sealed["reference"] or [])
    if len(sets) != bool(excess):
        what = f"has {len(sets)} events of the hypothesis; A_H has {len(excess)} outcomes"
        found.fault(what, file=EVENTS, pointer=f"{at}/events")
    for i, event in sets:
        if {canonical(outcome) for outcome in event["outcomes"]} != excess:
            found.fault("is not exactly A_H", file=EVENTS, pointer=f"{at}/events/{i}/outcomes")


def _check_law(law: list[dict[str, Any]], events: list[dict[str, Any]], at: str, found: Found) -> None:
    check_unique((canonical(row["outcome"]).decode() for row in law), EVENTS, at, found)
    total = math.fsum(row["p"] for row in law)
    if abs(total - 1.0) > SUM:
        found.fault(f"its probabilities sum to {total!r}, not to 1", file=EVENTS, pointer=at)
    named = {canonical(event["outcome"]) for event in events if event["kind"] == "outcome"}
    for i, row in enumerate(law):
        if row["p"] > 0 and "crash" not in row["outcome"] and canonical(row["outcome"]) not in named:
            found.fault("has no `outcome` event", file=EVENTS, pointer=f"{at}/{i}/outcome")


def _above(law: list[dict[str, Any]], reference: list[dict[str, Any]]) -> set[bytes]:
    """A_H: the outcomes that are no crash and to which the mechanism gives more than P does."""
    known = {canonical(row["outcome"]): row["p"] for row in reference}
    outcomes = ((canonical(row["outcome"]), row) for row in law if "crash" not in row["outcome"])
    return {outcome for outcome, row in outcomes if row["p"] > known.get(outcome, 0.0)}
