"""Step 5: what edition 2 adds beside hypotheses, and that a study of edition 1 has none of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from audits.channel_r import entry_wrong
from audits.fault import Found
from audits.references import FILE
from audits.study import Study

EVENTS = "events.json"


def _members(study: Study) -> Iterator[tuple[str, str]]:
    """Every member of edition 2 that the authored files have: file and JSON pointer."""
    protocol = study.protocol
    for key in ("hypotheses", "signers", "timestamp"):
        if key in protocol:
            yield FILE, f"/{key}"
    for i, c in enumerate(study.configurations):
        if "records" in c:
            yield FILE, f"/configurations/{i}/records"
    for arm, plan in protocol["sampling"].items():
        if "builds" in plan:
            yield FILE, f"/sampling/{arm}/builds"
    for name, sealed in study.events.items():
        for key in ("hypothesis", "records"):
            if key in sealed:
                yield EVENTS, f"/configurations/{name}/{key}"
    for i, prediction in enumerate(study.predictions):
        if prediction["claim"].get("channel") in ("records", "hypothesis"):
            yield "predictions.json", f"/predictions/{i}/claim/channel"


def check_first_edition(study: Study, found: Found) -> None:
    """A study whose protocol names no edition has no member of edition 2."""
    for file, pointer in _members(study):
        found.fault("is of edition 2, and the protocol names no edition", file=file, pointer=pointer)


def check_told(study: Study, found: Found) -> None:
    """Section 16: which configurations have records, and the sealed table of what they should hold."""
    drawn = {c["id"] for c in study.drawn}
    for i, c in enumerate(study.configurations):
        plan, at = c.get("records"), f"/configurations/{i}/records"
        table = study.events[c["id"]].get("records")
        replay = plan is not None and plan["reference"] == "replay"
        if (table is not None) != replay:
            what = "is there exactly for records with the reference `replay`"
            found.fault(what, file=EVENTS, pointer=f"/configurations/{c['id']}/records")
        if plan is None:
            continue
        if c["adapter"] == "command" or c["command"] is not None:
            found.fault("a command has no records", file=FILE, pointer=at)
        if c["id"] not in drawn:
            found.fault("is for configurations of a stage of draws", file=FILE, pointer=at)
        if study.protocol["decision"]["rule"] == "event-gap":
            found.fault("event-gap has no records", file=FILE, pointer=at)
        if replay and c["horizon"] is None:
            what = "records with the reference `replay` have a position for each token of the horizon"
            found.fault(what, file=FILE, pointer=f"/configurations/{i}/horizon")
        if table is not None and replay:
            _check_table(table, plan["told"], f"/configurations/{c['id']}/records", found)


def _check_table(table: list[dict[str, Any]], told: int, at: str, found: Found) -> None:
    seen: set[tuple[int, ...]] = set()
    for i, row in enumerate(table):
        prefix = tuple(row["prefix"])
        if prefix in seen:
            found.fault("a prefix that is there twice", file=EVENTS, pointer=f"{at}/{i}/prefix")
        seen.add(prefix)
        wrong = entry_wrong(row["entry"])
        if wrong is None and len(row["entry"]["values"]) < told:
            wrong = f"has {len(row['entry']['values'])} values, and `told` is {told}"
        if wrong is not None:
            found.fault(wrong, file=EVENTS, pointer=f"{at}/{i}/entry")
    if () not in seen:
        found.fault("has no empty prefix", file=EVENTS, pointer=at)
