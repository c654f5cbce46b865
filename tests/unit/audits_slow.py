"""Sections 10 to 12 of docs/formats.md the slow way: over draws one by one, with scipy's quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rfc8785
from scipy.stats import beta

Json = dict[str, Any]

A, B, C, D = ({"tokens": t, "finish": None} for t in ([1, 2], [1, 3, 0], [2, 0], [1, 2, 3, 4, 5]))
"""Three outcomes of the reference law, and one beyond the horizon: a witness."""
CRASH = {"crash": "RuntimeError"}
EVENTS: list[Json] = [
    {"id": "a", "kind": "outcome", "outcome": A},
    {"id": "b", "kind": "outcome", "outcome": B},
    {"id": "other", "kind": "other"},
    {"id": "one", "kind": "prefix", "tokens": [1]},
    {"id": "two", "kind": "length", "equals": 2},
    {"id": "long", "kind": "longer", "than": 3},
    {"id": "unfinished", "kind": "finish", "equals": None},
    {"id": "crash", "kind": "crash"},
    {"id": "broken", "kind": "violation"},
    {"id": "hyp", "kind": "set", "outcomes": [A, C], "hypothesis": "h-1"},
]
LAW = [{"outcome": A, "p": 0.5}, {"outcome": B, "p": 0.25}, {"outcome": C, "p": 0.25}]


def canon(value: Any) -> bytes:
    """RFC 8785 bytes, by a library the auditor does not use."""
    return rfc8785.dumps(value)


def slow_contains(event: Json, outcome: Json) -> bool:
    """The kinds this fixture's families use."""
    kind = event["kind"]
    tokens: Any = outcome.get("tokens")
    if "crash" in outcome:
        return bool(kind == "crash")
    table: dict[str, Callable[[], bool]] = {
        "crash": lambda: False,
        "outcome": lambda: outcome == event["outcome"],
        "other": lambda: outcome not in (A, B),
        "prefix": lambda: tokens[:1] == event["tokens"],
        "length": lambda: len(tokens) == event["equals"],
        "longer": lambda: len(tokens) > event["than"],
        "finish": lambda: outcome["finish"] == event["equals"],
        "violation": lambda: bool(slow_violated(outcome)),
        "set": lambda: outcome in event["outcomes"],
        "value": lambda: outcome["value"] == event["equals"],
        "at-least": lambda: outcome["value"] >= event["value"],
    }
    return table[kind]()


def slow_violated(outcome: Json) -> list[str]:
    tokens = outcome.get("tokens", [])
    return ["horizon"] * (len(tokens) > 3) + ["letters"] * any(t > 3 for t in tokens)


def slow_bounds(k: int, n: int, level: float) -> tuple[float, float]:
    low = 0.0 if k == 0 else float(beta.ppf(level, k, n - k + 1))
    return low, 1.0 if k == n else float(beta.isf(level, k + 1, n - k))


def slow_decision(
    p: Any, c: str, off: list[Json] | None, on: list[Json] | None, sums: list[int | None]
) -> Json:
    """One configuration of a plan, from the outcomes of its two arms (None for a lost one)."""
    events = p.events_of(c)
    count = 4 * (len(events) + (len(p.second.record_events(c)) if p.second else 0))
    level = 0.05 / (len(p.drawn) * count)
    row: Json = {"id": c, "rule": p.rule, "B": count, "level": level}
    row["draws"] = {"off": off and len(off), "on": on and len(on)}
    row["crashes"] = {k: v and sum("crash" in o for o in v) for k, v in (("off", off), ("on", on))}
    row |= dict(zip(("proposals", "verifications", "accepted"), sums, strict=True))
    if off is None or on is None:
        row |= {"verdict": "INVALID", "reasons": ["unit-lost"], "D": None, "D_event": None, "bounds": []}
        return row | {"D_complement": None, "eligible": False, "witnesses": [], "calibration": None}
    bounds, gaps, excesses = [], [], []
    for event in events:
        k = [sum(slow_contains(event, o) for o in arm) for arm in (off, on)]
        (lo, uo), (ln, un) = slow_bounds(k[0], len(off), level), slow_bounds(k[1], len(on), level)
        prob = None
        if p.law is not None:
            prob = min(1.0, math.fsum(r["p"] for r in p.law if slow_contains(event, r["outcome"])))
        bounds.append({
            "event": event["id"], "p": prob, "k_off": k[0], "k_on": k[1],
            "L_off": lo, "U_off": uo, "L_on": ln, "U_on": un,
        })  # fmt: skip
        for complement in (False, True):
            clean = (event["kind"] == "crash") == complement
            gap = (1 - un) - (1 - lo) if complement else ln - uo
            gaps.append((gap, event["id"], complement, clean))
            q = prob or 0.0
            excesses.append(((1 - uo) - (1 - q) if complement else lo - q, event["id"], complement))
    witnesses: list[Json] = []
    if p.law is not None:
        known = [r["outcome"] for r in p.law if r["p"] > 0]
        spared = {name for o in off for name in slow_violated(o)}
        for outcome in {canon(o): o for o in on if o not in known}.values():
            for name in slow_violated(outcome):
                if name not in spared:
                    witnesses.append({"outcome": outcome, "predicate": name, "count": on.count(outcome)})
        witnesses.sort(key=lambda w: (-w["count"], canon(w["outcome"]), w["predicate"]))
    top = max(gaps, key=lambda g: g[0])
    worst = max(excesses, key=lambda e: e[0])
    violations = sum(bool(slow_violated(o)) for o in off)
    above = top[0] > p.threshold
    if p.rule == "event-gap":
        verdict, reasons = ("DIFFERS", ["bound"]) if above else ("NOT_REJECTED", ["none"])
    elif violations or worst[0] > (p.allowance or 0):
        verdict = "VOID"
        reasons = ["off-arm-violation"] * bool(violations) + ["calibration-excess"] * (
            worst[0] > (p.allowance or 0)
        )
    elif sums[0] == 0:
        verdict, reasons = "INCONCLUSIVE", ["nothing-proposed"]
    elif witnesses or above:
        verdict, reasons = "FAILS", ["witness"] * bool(witnesses) + ["bound"] * above
    else:
        verdict, reasons = "NOT_REJECTED", ["none"]
    passed = not violations and worst[0] <= (p.allowance or 0)
    calibration = {"passed": passed, "violations": violations, "excess": worst[0]}
    calibration |= {"event": worst[1], "complement": worst[2]}
    return row | {
        "verdict": verdict, "reasons": reasons, "D": top[0], "D_event": top[1], "D_complement": top[2],
        "eligible": verdict in ("FAILS", "DIFFERS")
        and (bool(witnesses) or any(g[3] and g[0] > p.threshold for g in gaps)),
        "witnesses": witnesses, "calibration": None if p.law is None else calibration, "bounds": bounds,
    }  # fmt: skip


def slow_status(claim: Json, verdicts: dict[str, str]) -> str:
    """Enough for the fixture's predictions: nothing lost in what a count names, but for one unit."""
    if claim["kind"] == "verdict":
        verdict = verdicts[claim["configuration"]]
        if verdict == "INVALID":
            return "NOT_DETERMINED"
        return "HELD" if verdict in claim["in"] else "FAILED"
    found = [verdicts[name] for name in claim["configurations"]]
    low = found.count(claim["verdict"])
    high = low + found.count("INVALID")
    need = claim["at_least"]
    return "HELD" if low >= need else "NOT_DETERMINED" if high >= need else "FAILED"
