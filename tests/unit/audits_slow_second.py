"""Sections 15 and 16 of docs/formats.md the slow way: record by record, entry by entry, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from audits_slow import Json, canon, slow_bounds, slow_contains
from audits_slow_exact import clipped, rounded, slack, slow_masses


def _place(value: Any) -> tuple[int, Fraction]:
    """Where a value stands: ``-inf`` below every number, ``inf`` above."""
    if isinstance(value, str):
        return (-1 if value == "-inf" else 1), Fraction()
    return 0, Fraction(value)


def slow_matches(entry: Json, reference: Json, told: int, tolerance: float) -> bool:
    """As the page says it, for values that are numbers, ``-inf`` or ``inf``."""
    known = dict(zip(reference["tokens"], reference["values"], strict=True))
    if len(entry["values"]) < told:
        return False
    for token, value in zip(entry["tokens"], entry["values"], strict=True):
        if token not in known:
            return False
        one, other = _place(value), _place(known[token])
        both = one[0] == other[0] == 0 and float(abs(one[1] - other[1])) <= tolerance
        if not both and not value == known[token] == "-inf":
            return False
    kept = sorted((_place(value) for value in entry["values"]), reverse=True)[told - 1]
    for token, value in known.items():
        if token not in entry["tokens"]:
            here = _place(value)
            if here[0] > kept[0] or (here[0] == kept[0] and float(here[1] - kept[1]) > tolerance):
                return False
    return True


def slow_positions(line: Json, table: dict[tuple[int, ...], Json], told: int, tolerance: float) -> list[int]:
    """The positions of a record that are mismatches."""
    tokens, record = line["outcome"].get("tokens", []), line["record"]
    found = []
    for i in range(1, max(len(tokens), len(record)) + 1):
        prefix = tuple(tokens[: i - 1])
        if (
            len(tokens) < i
            or len(record) < i
            or prefix not in table
            or not slow_matches(record[i - 1], table[prefix], told, tolerance)
        ):
            found.append(i)
    return found


def _slow_records(p: Any, c: str, row: Json, off: list[Json] | None, on: list[Json] | None) -> Json:
    plan, events = p.second.records[c], p.second.record_events(c)
    nothing: Json = {"D": None, "D_event": None, "bounds": []}
    if not events:
        return nothing | {"verdict": "INCOMPLETE", "reasons": ["no-reference"]}
    if off is None or on is None:
        return nothing | {"verdict": "INVALID", "reasons": ["unit-lost"]}
    found = [
        [slow_positions(line, p.second.table, plan["told"], plan["tolerance"]) for line in arm]
        for arm in (off, on)
    ]
    bounds = []
    for at, event in enumerate(events):
        k = [sum(bool(one) if event == "any" else at in one for one in arm) for arm in found]
        (lo, uo), (ln, un) = (slow_bounds(k[i], len(found[i]), row["level"]) for i in (0, 1))
        bounds.append({
            "event": event, "k_off": k[0], "k_on": k[1], "L_off": lo, "U_off": uo, "L_on": ln, "U_on": un,
        })  # fmt: skip
    top = max(bounds, key=lambda bound: bound["L_on"] - bound["U_off"])
    gap = top["L_on"] - top["U_off"]
    if row["verdict"] == "VOID":
        verdict, reason = "VOID", "calibration"
    elif row["proposals"] == 0:
        verdict, reason = "INCONCLUSIVE", "nothing-proposed"
    else:
        verdict, reason = ("FAILS", "mismatch") if gap > 0 else ("NOT_REJECTED", "none")
    said = {"verdict": verdict, "reasons": [reason], "D": gap, "D_event": top["event"]}
    return said | {"bounds": bounds}


def _slow_fit(law: list[Json], events: list[Json], on: list[Json], level: float) -> tuple[float, str, int]:
    found = []
    for event in events:
        k = sum(slow_contains(event, line["outcome"]) for line in on)
        low, high = slow_bounds(k, len(on), level)
        p = min(1.0, rounded(r["p"] for r in law if slow_contains(event, r["outcome"])))
        found.append((max(low - p, p - high), event["id"]))
    possible = [r["outcome"] for r in law if r["p"] > 0]
    top = max(found, key=lambda one: one[0])
    return *top, sum(line["outcome"] not in possible for line in on)


def _slow_hypothesis(p: Any, c: str, row: Json, on: list[Json] | None) -> Json:
    events = p.events_of(c)
    h = sum(name in p.drawn for name in p.second.laws)
    level = p.second.alpha / (h * 2 * len(events))
    said: Json = {"id": "H-D1-far", "level": level}
    keys = ("excess", "event", "impossible")
    if row["verdict"] == "INVALID" or on is None:
        lost = dict.fromkeys([*keys, *(f"null_{key}" for key in keys), "null_rejected"])
        return said | lost | {"status": "INVALID"}
    own = _slow_fit(p.second.laws[c], events, on, level)
    null = _slow_fit(p.law, events, on, level)
    said |= dict(zip(keys, own, strict=True)) | dict(zip((f"null_{k}" for k in keys), null, strict=True))
    rejected = [fit[0] > p.second.allowance or fit[2] > 0 for fit in (own, null)]
    status = "VOID" if row["verdict"] == "VOID" else "NOT_COMPATIBLE" if rejected[0] else "COMPATIBLE"
    return said | {"null_rejected": rejected[1], "status": status}


def slow_second(p: Any, c: str, row: Json, off: list[Json] | None, on: list[Json] | None) -> Json:
    """What a decision of edition 2 has besides; the arms as whole records, None for a lost one."""
    more: Json = {"exposed": on and sum(line["counters"]["verifications"] > 0 for line in on)}
    if c in p.second.records:
        more["records"] = _slow_records(p, c, row, off, on)
    if c in p.second.laws:
        more["hypothesis"] = _slow_hypothesis(p, c, row, on)
    return more


def slow_exactly(p: Any, c: str, verdict: str, trees: Any) -> Json:
    """``hypothesis`` of a decision of the exact stage."""
    said: Json = {"id": "H-D1-far"}
    keys = ("tv_lower", "tv_upper", "null_tv_lower", "null_tv_upper")
    if verdict == "INVALID":
        return said | dict.fromkeys(keys) | {"status": "INVALID"}
    masses, t = slow_masses(trees["on"]["leaves"]), slack(trees["on"]["leaves"])
    pairs = []
    for law in (p.second.laws[c], p.law):
        apart = math.fsum(max(0.0, r["p"] - masses.get(canon(r["outcome"]), 0.0)) for r in law)
        left = max(0.0, 1.0 - rounded(r["p"] for r in law))
        pairs += [max(0.0, apart - t), min(1.0, apart + left)]
    low, high = pairs[:2]
    status = "DEPARTS" if low > p.tolerance else "MATCHES" if high <= p.tolerance else "INCONCLUSIVE"
    said["status"] = "VOID" if verdict == "VOID" else status
    return said | dict(zip(keys, map(clipped, pairs), strict=True))
