"""Section 14 of docs/formats.md the slow way: every two leaves, every node, sums in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from audits_slow import EVENTS, LAW, Json, canon, slow_bounds, slow_contains, slow_violated

ARMS = ("off", "on")


def rounded(values: Iterable[float]) -> float:
    """The correctly rounded sum."""
    return float(sum((Fraction(value) for value in values), Fraction()))


def clipped(value: float, low: float = 0.0) -> float:
    return min(1.0, max(low, value))


def weight(leaf: Json) -> float:
    product = 1.0
    for p in leaf["p"]:
        product = product * p
    return product


def slow_is_tree(leaves: list[Json], unexplored: float) -> bool:
    nodes: dict[tuple[int, ...], dict[int, set[tuple[float, str]]]] = {}
    for leaf in leaves:
        for i, index in enumerate(leaf["choices"]):
            node = nodes.setdefault(tuple(leaf["choices"][:i]), {})
            node.setdefault(index, set()).add((leaf["p"][i], leaf["kinds"][i]))
    for one in leaves:
        for other in leaves:
            if one is not other and other["choices"][: len(one["choices"])] == one["choices"]:
                return False
    for node in nodes.values():
        if any(len(known) != 1 for known in node.values()):
            return False
        children = [next(iter(known)) for known in node.values()]
        if len({kind for _, kind in children}) != 1:
            return False
        total = rounded(p for p, _ in children)
        if total > 1 + 1e-9 or (unexplored == 0 and total < 1 - 1e-9):
            return False
    return bool(leaves) and abs(rounded([*map(weight, leaves), unexplored]) - 1) <= 1e-9


def slow_masses(leaves: list[Json]) -> dict[bytes, float]:
    names = {canon(leaf["outcome"]): leaf["outcome"] for leaf in leaves}
    return {
        name: rounded(weight(leaf) for leaf in leaves if leaf["outcome"] == outcome)
        for name, outcome in names.items()
    }


def _outcomes(leaves: list[Json]) -> list[Json]:
    found: list[Json] = []
    for leaf in leaves:
        if leaf["outcome"] not in found:
            found.append(leaf["outcome"])
    return found


def slack(leaves: list[Json]) -> float:
    return max(0.0, 1 - rounded(map(weight, leaves)))


def slow_exact(
    c: str,
    trees: Any,
    tolerance: float,
    law: list[Json] | None = LAW,
    events: Sequence[Json] = EVENTS,
) -> Json:
    """One configuration; each arm is {``leaves``, ``meta``} or None for a lost unit."""
    row: Json = {"id": c}
    leaves: Any = {arm: tree and tree["leaves"] for arm, tree in trees.items()}
    numbers: Any = {
        "unexplored": lambda arm: clipped(slack(leaves[arm])),
        "runs": lambda arm: trees[arm]["meta"]["runs"],
        "leaves": lambda arm: len(leaves[arm]),
        "outcomes": lambda arm: len(_outcomes(leaves[arm])),
        "crash_mass": lambda arm: clipped(
            rounded(weight(leaf) for leaf in leaves[arm] if "crash" in leaf["outcome"])
        ),
    }
    for key, number in numbers.items():
        row[key] = {arm: None if trees[arm] is None else number(arm) for arm in ARMS}
    if None in trees.values():
        lost = ("tv_lower", "tv_upper", "proposals", "verifications", "accepted", "D", "D_event")
        row |= dict.fromkeys((*lost, "D_complement", "witness_mass", "oracle"))
        return row | {"verdict": "INVALID", "reasons": ["unit-lost"], "witnesses": [], "masses": []}
    off, on = slow_masses(leaves["off"]), slow_masses(leaves["on"])
    s, t = slack(leaves["off"]), slack(leaves["on"])
    apart = rounded(max(0.0, off.get(y, 0.0) - on.get(y, 0.0)) for y in {*off, *on})
    low, high = max(0.0, apart - t), min(1.0, apart + s)
    masses, gaps = [], []
    for event in events:
        a, b = (
            rounded(m[canon(y)] for y in _outcomes(leaves[arm]) if slow_contains(event, y))
            for arm, m in (("off", off), ("on", on))
        )
        p = None
        if law is not None:
            p = min(1.0, rounded(r["p"] for r in law if slow_contains(event, r["outcome"])))
        masses.append({"event": event["id"], "p": p, "off": clipped(a), "on": clipped(b)})
        gaps += [(b - a - s, event["id"], False), (a - b - t, event["id"], True)]
    top = max(gaps, key=lambda gap: gap[0])
    witnesses: list[Json] = []
    if s <= 1e-9:
        spared = {name for y in _outcomes(leaves["off"]) for name in slow_violated(y)}
        for y in _outcomes(leaves["on"]):
            if canon(y) not in off:
                for name in slow_violated(y):
                    if name not in spared:
                        witnesses.append({"outcome": y, "predicate": name, "p": on[canon(y)]})
        order = ["horizon", "letters"]
        witnesses.sort(key=lambda w: (-w["p"], canon(w["outcome"]), order.index(w["predicate"])))
    oracle = None
    if law is not None:
        known = {canon(r["outcome"]): r["p"] for r in law}
        apart_by = [0.0]
        for y in {*off, *known}:
            mass, p = off.get(y, 0.0), known.get(y, 0.0)
            apart_by += [mass - p, p - mass - s]
        oracle = {"outcomes": len(law), "largest": clipped(max(apart_by))}
    run = [leaf["counters"] for leaf in leaves["on"] if not leaf["closed"]]
    sums = {key: sum(counters[key] for counters in run) for key in ("proposals", "verifications", "accepted")}
    void = []
    if not all(slow_is_tree(trees[arm]["leaves"], trees[arm]["meta"]["unexplored"]) for arm in ARMS):
        void.append("tree")
    checks = [trees[arm]["meta"]["admission"] for arm in ARMS]
    if not all(check["ok"] for admission in checks for check in admission.values()) or any(
        admission[name]["checked"] == 0
        for admission in checks
        for name, due in (
            ("replay", 1), ("interference", 1),
            ("refill", admission["refill"]["eligible"]), ("closed", admission["closed"]["closed"]),
        )
        if due
    ):  # fmt: skip
        void.append("admission")
    if oracle is not None and oracle["largest"] > 1e-6:
        void.append("oracle")
    departs = ["total-variation"] * (low > tolerance) + ["witness"] * bool(witnesses)
    if void:
        verdict, reasons = "VOID", void
    elif sums["proposals"] == 0:
        verdict, reasons = "INCONCLUSIVE", ["nothing-proposed"]
    elif departs:
        verdict, reasons = "DEPARTS", departs
    elif high <= tolerance:
        verdict, reasons = "EQUAL_WITHIN_TOLERANCE", ["within-tolerance"]
    else:
        verdict, reasons = "INCONCLUSIVE", ["interval"]
    once = {canon(w["outcome"]): w["p"] for w in witnesses}
    return row | sums | {
        "verdict": verdict, "reasons": reasons, "tv_lower": clipped(low), "tv_upper": clipped(high),
        "D": clipped(top[0], -1.0), "D_event": top[1], "D_complement": top[2], "oracle": oracle,
        "witness_mass": clipped(rounded(once.values())), "witnesses": witnesses, "masses": masses,
    }  # fmt: skip


def slow_premise(
    c: str,
    verdict: str,
    trees: Any,
    draws: Any,
    level: float,
    events: Sequence[Json] = EVENTS,
) -> Json:
    """The test of the premise on one configuration, draw by draw."""
    row: Json = {"id": c, "level": level, "off": None, "on": None}
    if None in trees.values() or None in draws.values():
        return row | {"status": "INVALID", "reasons": ["unit-lost"]}
    if verdict == "VOID":
        return row | {"status": "NOT_TESTED", "reasons": ["not-admitted"]}
    for arm in ARMS:
        leaves, drawn = trees[arm]["leaves"], draws[arm]
        left = slack(leaves)
        found = []
        for event in events:
            k = sum(slow_contains(event, y) for y in drawn)
            low, high = slow_bounds(k, len(drawn), level)
            mass = math.fsum(weight(leaf) for leaf in leaves if slow_contains(event, leaf["outcome"]))
            found.append((max(low - mass - left, mass - high), event["id"]))
        excess, event_ = max(found, key=lambda one: one[0])
        outside = sum(all(y != leaf["outcome"] for leaf in leaves) for y in drawn)
        row[arm] = {
            "draws": len(drawn), "outside": 0 if trees[arm]["meta"]["unexplored"] > 0 else outside,
            "excess": clipped(excess, -1.0), "event": event_,
        }  # fmt: skip
    reasons = ["outside-law"] * any(row[arm]["outside"] > 0 for arm in ARMS)
    reasons += ["bound"] * any(row[arm]["excess"] > 1e-9 for arm in ARMS)
    return row | {"status": "FAILS" if reasons else "NOT_REJECTED", "reasons": reasons or ["none"]}
