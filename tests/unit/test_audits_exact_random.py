"""Trees at random: the auditor against its slow twin, on trees and on leaves that are nearly one."""

from __future__ import annotations

import copy
from typing import Any

from audits_laws import decided, premise_of
from audits_slow import CRASH, LAW, A, B, C, D, Json
from audits_slow_exact import slow_exact, slow_premise
from audits_trees import Branch, off, on
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.compare import compare, compare_premise

OUTCOMES = [A, B, C, D, CRASH, {"tokens": [1, 2], "finish": "stop"}]
WEIGHTS = st.lists(st.integers(1, 9), min_size=1, max_size=3)


@st.composite
def branches(draw: st.DrawFn, depth: int = 3) -> list[Branch]:
    """The leaves of a random tree, in order."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return [([], "", [], draw(st.sampled_from(OUTCOMES)))]
    weights = draw(WEIGHTS)
    kind = "a" if len(weights) == 2 and draw(st.booleans()) else draw(st.sampled_from("tdrb"))
    found: list[Branch] = []
    for index, weight in enumerate(weights):
        for choices, kinds, p, outcome in draw(branches(depth=depth - 1)):
            found.append(([index, *choices], kind + kinds, [weight / sum(weights), *p], outcome))
    return found


def _dropped(found: list[Branch], places: set[int]) -> tuple[list[Branch], float]:
    kept = [branch for i, branch in enumerate(found) if i not in places] or found
    total = 0.0
    for _, _, p, _ in kept:
        weight = 1.0
        for one in p:
            weight *= one
        total += weight
    return kept, max(0.0, 1 - total)


@st.composite
def arms(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two arms, each a tree, a bounded tree, or leaves of which one was altered."""
    made = []
    for make in (off, on):
        found = draw(branches())
        left = draw(st.sets(st.integers(0, 9), max_size=2)) if draw(st.booleans()) else set()
        found, unexplored = _dropped(found, left)
        options: Any = {"unexplored": unexplored if left else 0}
        tree = make(branches=found, closed_at=(0,) if draw(st.booleans()) else (), **options)
        if draw(st.integers(0, 3)) == 0:
            leaf = draw(st.sampled_from(tree["leaves"]))
            if leaf["p"]:
                i = draw(st.integers(0, len(leaf["p"]) - 1))
                leaf["p"][i] = draw(st.sampled_from([leaf["p"][i] * 0.5, leaf["p"][i] * (1 - 1e-11)]))
        made.append(tree)
    return made[0], made[1]


@settings(max_examples=150, deadline=None)
@given(arms(), st.booleans(), st.sampled_from([1e-9, 0.05]))
def test_laws_and_verdicts(both: tuple[Json, Json], oracle: bool, tolerance: float) -> None:
    law = copy.deepcopy(LAW) if oracle else None
    trees = {"off": both[0], "on": both[1]}
    derived = decided(*both, law=law, tolerance=tolerance)
    assert compare(slow_exact("c", trees, tolerance, law), derived) == []


@settings(max_examples=50, deadline=None)
@given(arms(), st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=30))
def test_premises(both: tuple[Json, Json], drawn: list[Json]) -> None:
    draws: Any = {"off": drawn, "on": drawn[::-1]}
    found = premise_of(*both, draws)
    trees = {"off": both[0], "on": both[1]}
    verdict = slow_exact("c", trees, 1e-9)["verdict"]
    assert compare_premise(slow_premise("c", verdict, trees, draws, 0.05 / 40), found) == []
