"""The exact channel's verdict from leaves alone."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from prereg.analyse.exact import EXPLAINED, TOLERANCE, decide_exactly, departing_paths, law_of, refusals
from prereg.model.law import Crashed, Decoded, LengthEvent, MaxTokens, Predicate
from prereg.model.tree import Tree, TreeLeaf
from prereg.report.words import gap_words

HORIZON = Predicate(id="horizon", statement="", source="", rule=MaxTokens(n=1))
EVENTS = (LengthEvent(id="length-1", equals=1), LengthEvent(id="length-2", equals=2))


def leaf(
    choices: tuple[int, ...],
    *p: float,
    tokens: tuple[int, ...] | None = None,
    proposals: int = 1,
    closed: bool = False,
) -> TreeLeaf:
    outcome = Decoded(tokens=choices if tokens is None else tokens, finish=None)
    return TreeLeaf(choices=choices, p=p, outcome=outcome, proposals=proposals, accepted=0, closed=closed)


def tree(*leaves: TreeLeaf, unexplored: float = 0.0, **checks: bool | None) -> Tree:
    admission: dict[str, Any] = {
        "replay": {"checked": 2, "ok": True},
        "interference": {"checked": 2, "ok": True},
    }
    admission |= {n: None if ok is None else {"checked": 2, "ok": ok} for n, ok in checks.items()}
    return Tree(leaves=leaves, runs=len(leaves), unexplored=unexplored, admission=admission, seconds=0.0)


OFF = tree(leaf((0,), 0.5), leaf((1,), 0.5))

ROWS = {
    "equal": (OFF, tree(leaf((0,), 0.5), leaf((1,), 0.5)), "EQUAL_WITHIN_TOLERANCE"),
    "equal by other paths": (
        OFF,
        tree(
            leaf((0,), 0.5),
            leaf((1, 0), 0.5, 0.25, tokens=(1,)),
            leaf((1, 1), 0.5, 0.75, tokens=(1,)),
        ),
        "EQUAL_WITHIN_TOLERANCE",
    ),
    "departs": (OFF, tree(leaf((0,), 0.6), leaf((1,), 0.4)), "DEPARTS"),
    "an outcome of its own": (OFF, tree(leaf((0,), 0.5), leaf((1,), 0.5, tokens=(1, 1))), "DEPARTS"),
    "within the tolerance": (
        OFF,
        tree(leaf((0,), 0.5 + TOLERANCE / 2), leaf((1,), 0.5 - TOLERANCE / 2)),
        "EQUAL_WITHIN_TOLERANCE",
    ),
    "nothing proposed": (
        OFF,
        tree(leaf((0,), 0.6, proposals=0), leaf((1,), 0.4, proposals=0)),
        "INCONCLUSIVE",
    ),
    "too little explored to say": (OFF, tree(leaf((0,), 0.5), unexplored=0.5), "INCONCLUSIVE"),
    "enough explored to say": (OFF, tree(leaf((0,), 0.9), unexplored=0.1), "DEPARTS"),
    "weights that do not sum to 1": (OFF, tree(leaf((0,), 0.5), leaf((1,), 0.4)), "VOID"),
    "a check that failed": (OFF, tree(leaf((0,), 0.5), leaf((1,), 0.5), replay=False), "VOID"),
    "nothing finished": (OFF, tree(unexplored=1.0), "VOID"),
    "a leaf that goes on where another ends": (OFF, tree(leaf((0,), 0.5), leaf((0, 1), 0.5, 1.0)), "VOID"),
    "nothing replayed": (OFF, tree(leaf((0,), 0.5), leaf((1,), 0.5), replay=None), "VOID"),
    "a witness within the tolerance": (
        OFF,
        tree(leaf((0,), 0.5), leaf((1,), 0.499999), leaf((2,), 1e-6, tokens=(1, 1))),
        "DEPARTS",
    ),
    "proposals of closed leaves do not count": (
        OFF,
        tree(leaf((0,), 0.6, proposals=0), leaf((1,), 0.4, closed=True)),
        "INCONCLUSIVE",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_verdict(name: str) -> None:
    off, on, verdict = ROWS[name]
    found = decide_exactly(off, on, events=EVENTS, predicates=[HORIZON])
    assert found.verdict == verdict, found.reason


def test_witness_mass_and_the_largest_event() -> None:
    on = tree(leaf((0,), 0.5), leaf((1,), 0.3, tokens=(1, 1)), leaf((2,), 0.2, tokens=(1, 0)))
    found = decide_exactly(OFF, on, events=EVENTS, predicates=[HORIZON])
    assert found.witness_mass == pytest.approx(0.5)
    assert (found.event, found.event_gap) == ("length-1", pytest.approx(-0.5))
    assert found.tv_lower == found.tv_upper == pytest.approx(0.5)
    assert departing_paths(OFF, on) == [(1,), (2,)]


def test_as_many_failing_paths_as_are_to_be_explained_the_heaviest_first() -> None:
    weights = [n / 300 for n in range(1, 25)]
    on = tree(*(leaf((n,), p, tokens=(5, n)) for n, p in enumerate(weights)))
    assert departing_paths(OFF, on) == [(n,) for n in range(23, 23 - EXPLAINED, -1)]


def test_the_gap_of_an_event_allows_for_what_is_unexplored() -> None:
    long = leaf((2,), 0.25, tokens=(1, 1, 1))
    off = tree(leaf((0,), 0.25), leaf((1,), 0.25, tokens=(1, 1)), long, unexplored=0.25)
    on = tree(leaf((0,), 0.25), leaf((1,), 0.625, tokens=(1, 1)), unexplored=0.125)
    found = decide_exactly(off, on, events=EVENTS, predicates=[HORIZON])
    assert (found.event, found.event_gap) == ("length-2", 0.375)
    assert (found.event_gap_lower, found.event_gap_upper) == (0.125, 0.5)
    assert gap_words(found) == "length-2, on minus off +0.125 to +0.5 (+0.375 of what was explored)"


def test_the_event_is_the_one_whose_gap_is_sure() -> None:
    off = tree(leaf((0,), 0.25), leaf((1,), 0.5, tokens=(1, 1)), unexplored=0.25)
    on = tree(leaf((0,), 0.5), leaf((1,), 0.3125, tokens=(1, 1)), leaf((2,), 0.1875, tokens=(1, 1, 1)))
    # The larger gap, +0.25, may be nothing but what the off arm left; of -0.1875 nothing is left to chance.
    found = decide_exactly(off, on, events=EVENTS, predicates=[HORIZON])
    assert (found.event, found.event_gap) == ("length-2", -0.1875)
    assert (found.event_gap_lower, found.event_gap_upper) == (-0.4375, -0.1875)
    whole = decide_exactly(OFF, OFF, events=EVENTS, predicates=[HORIZON])
    assert gap_words(whole) == "length-1, on minus off +0"


def test_what_slack_could_explain_is_no_failing_path() -> None:
    on = tree(leaf((0,), 0.5), leaf((1,), 0.5))
    assert departing_paths(tree(leaf((0,), 0.5), unexplored=0.5), on) == []
    assert departing_paths(tree(leaf((0,), 0.75), unexplored=0.25), on) == [(0,), (1,)]


def test_failing_paths_begin_with_the_shortest_and_of_those_the_heaviest() -> None:
    off = tree(leaf((0,), 0.5), leaf((1,), 0.25), leaf((2,), 0.25))
    on = tree(
        leaf((0,), 0.5),
        leaf((1, 0, 0), 0.125, tokens=(1,)),
        leaf((1, 1), 0.1875, tokens=(1,)),
        leaf((2, 1), 0.125, tokens=(3,)),
        leaf((3,), 0.0625, tokens=(2,)),
    )
    assert departing_paths(off, on) == [(3,), (1, 1), (2, 1), (1, 0, 0)]


def test_a_dropped_leaf_is_refused() -> None:
    found = decide_exactly(OFF, tree(leaf((0,), 0.5)), events=(), predicates=())
    assert found.verdict == "VOID"
    assert found.reason.startswith("not admitted (on arm: the children of a node 0 choices deep sum to 0.5")


def test_checks_that_fail_or_look_at_nothing_are_named() -> None:
    assert refusals(OFF) == []
    assert refusals(tree(leaf((0,), 1.0), walk=False, interference=None)) == ["walk", "interference"]


def test_the_interval_holds_whatever_is_unexplored() -> None:
    """Brute force: complete both laws at random; the true distance stays inside."""
    rng = random.Random(1)
    for _ in range(200):
        laws = []
        for _arm in range(2):
            weights = [rng.random() ** 3 for _ in range(4)]
            total = sum(weights)
            laws.append([w / total for w in weights])
        truth = 0.5 * sum(abs(a - b) for a, b in zip(*laws, strict=True))
        trees = []
        for law in laws:
            kept = [(i, p) for i, p in enumerate(law) if rng.random() < 0.7]
            rest = 1.0 - math.fsum(p for _, p in kept)
            trees.append(tree(*(leaf((i,), p) for i, p in kept), unexplored=max(0.0, rest)))
        found = decide_exactly(trees[0], trees[1], events=(), predicates=())
        assert found.tv_lower - 1e-12 <= truth <= found.tv_upper + 1e-12


def test_a_law_sums_over_paths() -> None:
    law = law_of(tree(leaf((0,), 0.5, 0.5), leaf((0,), 0.25), leaf((1,), 0.5)))
    assert law[Decoded(tokens=(0,), finish=None)] == 0.5


def test_where_every_request_crashes_the_crash_is_named() -> None:
    crashing = tree(
        TreeLeaf(choices=(), p=(), outcome=Crashed(crash="KeyError"), proposals=0, accepted=0),
    )
    result = decide_exactly(crashing, crashing, events=EVENTS, predicates=[])
    assert result.verdict == "INCONCLUSIVE"
    assert result.reason == "every request crashes, without speculation too (KeyError)"
