"""What the page says beside the verdicts: exposure, records, mechanisms (sections 15 and 16)."""

from __future__ import annotations

from typing import Any

from prereg.model.beside import MechanismDistance
from prereg.model.study import Study
from prereg.model.verdict import Decision, Decisions
from prereg.report import words


def rows(study: Study, decisions: Decisions | None) -> list[dict[str, Any]]:
    """What the page shows of each configuration by draws, in order; nothing where there is nothing."""
    if decisions is None:
        return []
    return [_row(study, d) for d in decisions.configurations if has_beside(d)]


def has_beside(decision: Decision) -> bool:
    """Whether anything is told beside the verdict: two commands have no drafter that draws are exposed to."""
    told = decision.records is not None or decision.hypothesis is not None
    return decision.exposed is not None and (told or decision.rule != "event-gap")


def _row(study: Study, decision: Decision) -> dict[str, Any]:
    family = {e.id: e for e in study.events.configurations[decision.id].events}
    records, found = decision.records, decision.hypothesis
    row = study.registered(decision.id)
    assert decision.exposed is not None
    return {
        "id": decision.id,
        "draws": decision.draws.on,
        "exposed": decision.exposed.draws,
        "records": records,
        "records_word": None if records is None else words.RECORDS[records.verdict],
        "records_reason": None if records is None else words.RECORDS_REASONS[records.reasons[0]],
        "plan": study.protocol.configuration(decision.id).records,
        "alone": alone(decision),
        "hypothesis": found,
        "hypothesis_word": None if found is None else words.COMPATIBILITY[found.status],
        "event": None if found is None or found.event is None else words.event(family[found.event]),
        "null_event": None
        if found is None or found.null_event is None
        else words.event(family[found.null_event]),
        "cause": None if row is None else row.cause,
    }


def alone(decision: Decision) -> bool:
    """Whether records fail where channel S does not: a departure of records is none of outcomes."""
    return (
        decision.records is not None
        and decision.records.verdict == "FAILS"
        and decision.verdict not in ("FAILS", "DIFFERS")
    )


def mechanism(study: Study, name: str, found: MechanismDistance | None) -> dict[str, Any]:
    """What the page shows of a mechanism beside the trees of a configuration."""
    if found is None:
        return {"mechanism": None}
    registered = study.hypotheses.hypotheses if study.hypotheses is not None else ()
    return {
        "mechanism": found,
        "mechanism_word": words.DISTANCE[found.status],
        "mechanism_says": next((h for h in registered if h.id == found.id), None),
    }
