"""Sections 15 and 16 of docs/formats.md followed line by line and slowly, for tests to hold the analysis to.

Every draw is looked at by itself, and every outcome asked of every event by its definition. Shared with the
analysis are only the definitions of events (`contains`) and the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from prereg.model.law import Decoded, Mass, Outcome, RecordEntry
from prereg.model.study import RecordsPlan, Study
from prereg.stats.exact import lower, upper
from prereg.stats.membership import contains, predicates_of

Draw = tuple[Outcome, tuple[RecordEntry, ...]]


def first_largest(values: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """The largest value, and the first name whose value is within rounding of it."""
    top = max(value for value, _ in values)
    return top, next(name for value, name in values if value >= top - 1e-11)


def is_match(entry: RecordEntry, reference: RecordEntry, plan: RecordsPlan) -> bool:
    said = dict(zip(reference.tokens, reference.values, strict=True))
    if not len(entry.values) >= plan.told:
        return False
    for token, value in zip(entry.tokens, entry.values, strict=True):
        if token not in said:
            return False
        numbers = not isinstance(value, str) and not isinstance(said[token], str)
        if not (
            (numbers and abs(value - said[token]) <= plan.tolerance)  # type: ignore[operator]
            or (value == "-inf" and said[token] == "-inf")
        ):
            return False
    ranked = sorted((v for v in entry.values if v != "-inf"), reverse=True)  # type: ignore[type-var]
    ranked += [v for v in entry.values if v == "-inf"]
    last = ranked[plan.told - 1]
    for token in reference.tokens:
        if token in entry.tokens or said[token] in ("-inf", "nan"):
            continue
        if last == "-inf" or said[token] == "inf":
            return False
        if said[token] - last > plan.tolerance:  # type: ignore[operator]
            return False
    return True


def is_mismatch(study: Study, name: str, draw: Draw, i: int) -> bool:
    """Whether position i, from 1, of a draw is a mismatch."""
    outcome, entries = draw
    if not isinstance(outcome, Decoded) or i > max(len(outcome.tokens), len(entries)):
        return False
    if i > len(outcome.tokens) or i > len(entries):
        return True
    rows = study.events.configurations[name].records
    plan = study.protocol.configuration(name).records
    assert rows is not None and plan is not None
    for row in rows:
        if row.prefix == outcome.tokens[: i - 1]:
            return not is_match(entries[i - 1], row.entry, plan)
    return True


def records_slowly(
    study: Study,
    name: str,
    off: Sequence[Draw] | None,
    on: Sequence[Draw] | None,
    proposals: int,
    verdict: str,
) -> dict[str, Any]:
    """`records` of a configuration's decision, given what channel S says of it."""
    configuration = study.protocol.configuration(name)
    assert configuration.records is not None and configuration.horizon is not None
    if configuration.records.reference == "none":
        return _nothing("INCOMPLETE", "no-reference")
    if off is None or on is None:
        return _nothing("INVALID", "unit-lost")
    R = 1 + configuration.horizon
    E = len(study.events.configurations[name].events)
    level = study.protocol.alpha / (len(study.protocol.drawn()) * 4 * (E + R))
    longest = 10
    rows = []
    for number in range(R):
        asked = range(1, longest + 1) if number == 0 else (number,)
        k_off, k_on = (
            sum(any(is_mismatch(study, name, draw, i) for i in asked) for draw in draws)
            for draws in (off, on)
        )
        rows.append(
            {
                "event": "any" if number == 0 else f"position-{number}",
                "k_off": k_off,
                "k_on": k_on,
                "L_off": lower(k_off, len(off), level),
                "U_off": upper(k_off, len(off), level),
                "L_on": lower(k_on, len(on), level),
                "U_on": upper(k_on, len(on), level),
            }
        )
    D, event = first_largest([(row["L_on"] - row["U_off"], row["event"]) for row in rows])  # type: ignore[operator]
    if verdict == "VOID":
        said = "VOID", "calibration"
    elif proposals == 0:
        said = "INCONCLUSIVE", "nothing-proposed"
    else:
        said = ("FAILS", "mismatch") if D > 0 else ("NOT_REJECTED", "none")
    return {"verdict": said[0], "reasons": [said[1]], "D": D, "D_event": event, "bounds": rows}


def _nothing(verdict: str, reason: str) -> dict[str, Any]:
    return {"verdict": verdict, "reasons": [reason], "D": None, "D_event": None, "bounds": []}


def compatible_slowly(study: Study, name: str, on: Sequence[Outcome] | None, verdict: str) -> dict[str, Any]:
    """`hypothesis` of a configuration's decision, given what channel S says of it."""
    family, plan = study.events.configurations[name], study.protocol.hypotheses
    assert plan is not None and plan.alpha is not None
    assert family.hypothesis is not None and family.reference is not None
    registered = {r.configuration for r in study.hypotheses.configurations} if study.hypotheses else set()
    h = len([c for c in study.protocol.drawn() if c.id in registered])
    level = plan.alpha / (h * 2 * len(family.events))
    found: dict[str, Any] = {"id": family.hypothesis.id, "level": level}
    for prefix, law in (("", family.hypothesis.law), ("null_", family.reference)):
        if verdict == "INVALID":
            found |= {f"{prefix}excess": None, f"{prefix}event": None, f"{prefix}impossible": None}
            continue
        assert on is not None
        excess, event = _excess(study, name, on, law, level)
        impossible = sum(not any(m.outcome == y and m.p > 0 for m in law) for y in on)
        found |= {f"{prefix}excess": excess, f"{prefix}event": event, f"{prefix}impossible": impossible}
    if verdict == "INVALID":
        return {**found, "status": "INVALID", "null_rejected": None}
    found["null_rejected"] = found["null_excess"] > plan.allowance or found["null_impossible"] > 0
    if verdict == "VOID":
        return {**found, "status": "VOID"}
    rejected = found["excess"] > plan.allowance or found["impossible"] > 0
    return {**found, "status": "NOT_COMPATIBLE" if rejected else "COMPATIBLE"}


def _excess(
    study: Study, name: str, on: Sequence[Outcome], law: Sequence[Mass], level: float
) -> tuple[float, str]:
    events = study.events.configurations[name].events
    rules = predicates_of(study, study.protocol.configuration(name))
    values = []
    for event in events:
        k = sum(contains(event, y, events, rules) for y in on)
        mu = min(1.0, math.fsum(m.p for m in law if contains(event, m.outcome, events, rules)))
        values.append((max(lower(k, len(on), level) - mu, mu - upper(k, len(on), level)), event.id))
    return first_largest(values)
