"""Section 14 of docs/formats.md followed line by line and slowly, for tests to hold the analysis to.

Nothing here looks for speed: every leaf is compared with every other, every outcome is asked of every event
by its definition. Numbers are not cut to 1 unless the page says so. Shared with the analysis are only the
definitions of events and rules (`contains`, `breaks`) and the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from prereg.codec.canonical import dumps
from prereg.codec.convert import to_json
from prereg.model.law import Crashed, Event, Outcome
from prereg.model.study import Study
from prereg.model.tree import TreeLeaf, UnitTree
from prereg.stats.exact import lower, upper
from prereg.stats.membership import breaks, contains, predicates_of

Draws = Mapping[str, list[Outcome]]
"""The outcomes of each unit of draws, one a draw."""


def weight(leaf: TreeLeaf) -> float:
    product = 1.0
    for p in leaf.p:
        product *= p
    return product


def is_tree(tree: UnitTree) -> bool:
    leaves, unexplored = tree.leaves, tree.meta.unexplored
    if not leaves:
        return False
    for i, one in enumerate(leaves):
        for j, two in enumerate(leaves):
            if i == j:
                continue
            if (
                two.choices[: len(one.choices)] == one.choices
                or one.choices[: len(two.choices)] == two.choices
            ):
                return False
            shared = 0
            while one.choices[shared] == two.choices[shared]:
                shared += 1
            if one.p[:shared] != two.p[:shared] or one.kinds[:shared] != two.kinds[:shared]:
                return False
            if one.kinds[shared] != two.kinds[shared]:
                return False
    children: dict[tuple[int, ...], dict[int, float]] = {}
    for leaf in leaves:
        for depth, index in enumerate(leaf.choices):
            children.setdefault(leaf.choices[:depth], {})[index] = leaf.p[depth]
    for known in children.values():
        total = math.fsum(known.values())
        if total > 1 + 1e-9 or (unexplored == 0 and total < 1 - 1e-9):
            return False
    return abs(math.fsum([*map(weight, leaves), unexplored]) - 1) <= 1e-9


def mass(tree: UnitTree, outcome: Outcome) -> float:
    return math.fsum(weight(leaf) for leaf in tree.leaves if leaf.outcome == outcome)


def outcomes(tree: UnitTree) -> set[Outcome]:
    return {leaf.outcome for leaf in tree.leaves}


def slack(tree: UnitTree) -> float:
    return max(0.0, 1 - math.fsum(map(weight, tree.leaves)))


def cut(value: float) -> float:
    return max(-1.0, min(1.0, value))


def first_largest(values: list[tuple[float, str, bool]]) -> tuple[float, str, bool]:
    """The largest; ties (closer than 1e-11) go to the first."""
    top = max(value for value, _, _ in values)
    for value, event, complement in values:
        if value >= top - 1e-11:
            return top, event, complement
    raise AssertionError


def decide_slowly(
    study: Study, trees: Mapping[str, UnitTree], draws: Draws, lost: Collection[str] = ()
) -> dict[str, Any]:
    """`exact` of decisions.json, as JSON."""
    protocol, plan = study.protocol, study.protocol.exact
    assert plan is not None
    stage = next(s for s in protocol.stages if s.channel == "exact")
    arms = (protocol.reference_arm.id, protocol.test_arm.id)
    decided = [_configuration(study, name, stage.id, arms, trees, lost) for name in stage.configurations]
    premise = None
    if plan.premise_alpha is not None:
        homes = {n: s.id for s in protocol.stages if s.channel != "exact" for n in s.configurations}
        both = [name for name in stage.configurations if name in homes]
        verdicts = {d["id"]: d["verdict"] for d in decided}
        tests = []
        for name in both:
            events = study.events.configurations[name].events
            level = plan.premise_alpha / (len(both) * 4 * len(events))
            row: dict[str, Any] = {"id": name, "level": level, "off": None, "on": None}
            drawn = [f"{homes[name]}.{name}.{arm}" for arm in arms]
            walked = [f"{stage.id}.{name}.{arm}" for arm in arms]
            if any(unit in lost for unit in (*drawn, *walked)):
                row |= {"status": "INVALID", "reasons": ["unit-lost"]}
            elif verdicts[name] == "VOID":
                row |= {"status": "NOT_TESTED", "reasons": ["not-admitted"]}
            else:
                for key, u, v in zip(("off", "on"), drawn, walked, strict=True):
                    row[key] = _premise_arm(study, name, draws[u], trees[v], level)
                reasons = []
                if row["off"]["outside"] > 0 or row["on"]["outside"] > 0:
                    reasons.append("outside-law")
                if row["off"]["excess"] > 1e-9 or row["on"]["excess"] > 1e-9:
                    reasons.append("bound")
                row |= {"status": "FAILS" if reasons else "NOT_REJECTED", "reasons": reasons or ["none"]}
            tests.append(row)
        premise = {"alpha": plan.premise_alpha, "m": len(both), "configurations": tests}
    return {"tolerance": plan.tolerance, "configurations": decided, "premise": premise}


def _in(study: Study, name: str, event: Event, outcome: Outcome) -> bool:
    events = study.events.configurations[name].events
    return contains(event, outcome, events, predicates_of(study, study.protocol.configuration(name)))


def _event_mass(study: Study, name: str, event: Event, tree: UnitTree) -> float:
    return math.fsum(mass(tree, y) for y in outcomes(tree) if _in(study, name, event, y))


def _premise_arm(
    study: Study, name: str, drawn: list[Outcome], tree: UnitTree, level: float
) -> dict[str, Any]:
    rest, n = slack(tree), len(drawn)
    values = []
    for event in study.events.configurations[name].events:
        k = sum(_in(study, name, event, y) for y in drawn)
        m = _event_mass(study, name, event, tree)
        values.append((max(lower(k, n, level) - m - rest, m - upper(k, n, level)), event.id, False))
    excess, event_id, _ = first_largest(values)
    outside = 0 if tree.meta.unexplored > 0 else sum(y not in outcomes(tree) for y in drawn)
    return {"draws": n, "outside": outside, "excess": cut(excess), "event": event_id}


def _configuration(
    study: Study,
    name: str,
    stage: str,
    arms: tuple[str, str],
    trees: Mapping[str, UnitTree],
    lost: Collection[str],
) -> dict[str, Any]:
    tolerance = study.protocol.exact.tolerance  # type: ignore[union-attr]
    units = dict(zip(("off", "on"), (f"{stage}.{name}.{arm}" for arm in arms), strict=True))
    have = {key: trees[unit] for key, unit in units.items() if unit not in lost}

    def each(number: Any) -> dict[str, Any]:
        return {key: number(have[key]) if key in have else None for key in ("off", "on")}

    def crashes(tree: UnitTree) -> float:
        return cut(math.fsum(mass(tree, y) for y in outcomes(tree) if isinstance(y, Crashed)))

    value: dict[str, Any] = {
        "id": name,
        "unexplored": each(slack),
        "runs": each(lambda tree: tree.meta.runs),
        "leaves": each(lambda tree: len(tree.leaves)),
        "outcomes": each(lambda tree: len(outcomes(tree))),
        "crash_mass": each(crashes),
    }
    if len(have) < 2:
        nothing = ("tv_lower", "tv_upper", "proposals", "verifications", "accepted", "D", "D_event")
        value |= dict.fromkeys((*nothing, "D_complement", "witness_mass", "oracle"))
        return value | {"verdict": "INVALID", "reasons": ["unit-lost"], "masses": [], "witnesses": []}
    off, on = have["off"], have["on"]
    s, t = slack(off), slack(on)
    distance = math.fsum(max(0.0, mass(off, y) - mass(on, y)) for y in outcomes(off) | outcomes(on))
    tv_lower, tv_upper = max(0.0, distance - t), min(1.0, distance + s)
    ran = [leaf for leaf in on.leaves if not leaf.closed]
    proposals = sum(leaf.proposals for leaf in ran)
    family = study.events.configurations[name]
    masses, gaps = [], []
    for event in family.events:
        a, b = (_event_mass(study, name, event, tree) for tree in (off, on))
        p = None
        if family.reference is not None:
            p = math.fsum(m.p for m in family.reference if _in(study, name, event, m.outcome))
        masses.append({"event": event.id, "p": None if p is None else cut(p), "off": cut(a), "on": cut(b)})
        gaps += [(b - a - s, event.id, False), (a - b - t, event.id, True)]
    D, D_event, D_complement = first_largest(gaps)
    oracle = None
    if family.reference is not None:
        P = {m.outcome: m.p for m in family.reference}
        oracle = {
            "outcomes": len(family.reference),
            "largest": cut(
                max(
                    [
                        0.0,
                        *(mass(off, y) - P.get(y, 0.0) for y in outcomes(off) | set(P)),
                        *(P.get(y, 0.0) - mass(off, y) - s for y in outcomes(off) | set(P)),
                    ]
                )
            ),
        }
    binding = predicates_of(study, study.protocol.configuration(name))
    witnesses = [
        {"outcome": to_json(y), "predicate": q.id, "p": cut(mass(on, y))}
        for y in outcomes(on)
        for q in binding
        if y not in outcomes(off)
        and s <= 1e-9
        and breaks(y, q.rule)
        and not any(breaks(z, q.rule) for z in outcomes(off))
    ]
    rank = {q.id: i for i, q in enumerate(binding)}
    witnesses.sort(key=lambda w: (-w["p"], dumps(w["outcome"]), rank[w["predicate"]]))
    checks = [check for tree in (off, on) for check in (to_json(tree.meta.admission)[key] for key in CHECKS)]
    looked = [
        check["checked"]
        for tree in (off, on)
        for check in (to_json(tree.meta.admission)[key] for key in ("replay", "interference"))
    ]
    for tree in (off, on):
        found = to_json(tree.meta.admission)
        looked += [found["refill"]["checked"]] if found["refill"]["eligible"] else []
        looked += [found["closed"]["checked"]] if found["closed"]["closed"] else []
    verdict, reasons = "INCONCLUSIVE", ["interval"]
    void = {
        "tree": not (is_tree(off) and is_tree(on)),
        "admission": not all(check["ok"] for check in checks) or 0 in looked,
        "oracle": oracle is not None and oracle["largest"] > 1e-6,
    }
    departs = {"total-variation": tv_lower > tolerance, "witness": bool(witnesses)}
    if any(void.values()):
        verdict, reasons = "VOID", [reason for reason, holds in void.items() if holds]
    elif proposals == 0:
        verdict, reasons = "INCONCLUSIVE", ["nothing-proposed"]
    elif any(departs.values()):
        verdict, reasons = "DEPARTS", [reason for reason, holds in departs.items() if holds]
    elif tv_upper <= tolerance:
        verdict, reasons = "EQUAL_WITHIN_TOLERANCE", ["within-tolerance"]
    once = {dumps(w["outcome"]): w["p"] for w in witnesses}
    return value | {
        "verdict": verdict,
        "reasons": reasons,
        "tv_lower": cut(tv_lower),
        "tv_upper": tv_upper,
        "proposals": proposals,
        "verifications": sum(leaf.verifications for leaf in ran),
        "accepted": sum(leaf.accepted for leaf in ran),
        "D": cut(D),
        "D_event": D_event,
        "D_complement": D_complement,
        "witness_mass": cut(math.fsum(once.values())),
        "witnesses": witnesses,
        "oracle": oracle,
        "masses": masses,
    }


CHECKS = ("walk", "replay", "refill", "closed", "randomness", "interference")
