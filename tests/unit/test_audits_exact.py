"""The exact stage: laws, verdicts, witnesses and the test of the premise, against their slow twin."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from audits_laws import decided, premise_of, read, study
from audits_slow import CRASH, LAW, A, B, C, D, Json
from audits_slow_exact import slow_exact, slow_is_tree, slow_premise
from audits_trees import CASES, OFF, ON, SHORT, STRANGE, TOLERANCE, Branch, became, bent, off, on, without

from audits.compare import compare, compare_premise
from audits.tree import is_tree


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str) -> None:
    of_off, of_on, verdict, reasons = CASES[name]
    derived = decided(of_off, of_on)
    assert (derived.row["verdict"], derived.row["reasons"]) == (verdict, reasons)
    assert compare(slow_exact("c", {"off": of_off, "on": of_on}, TOLERANCE), derived) == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2] == "VOID"])
def test_a_void_configuration_keeps_its_numbers(name: str) -> None:
    row = decided(*CASES[name][:2]).row
    numbers = ("tv_lower", "tv_upper", "D", "witness_mass", "proposals", "verifications", "accepted")
    assert all(row[key] is not None for key in numbers)
    assert all(0 <= row[key] <= 1 for key in ("tv_lower", "tv_upper", "witness_mass"))
    assert len(row["masses"]) == 10


LOST: dict[str, tuple[Json | None, Json | None]] = {
    "off": (None, on()), "on": (off(), None), "both": (None, None),
}  # fmt: skip


@pytest.mark.parametrize("lost", LOST)
def test_a_lost_arm_leaves_only_what_does_not_rest_on_it(lost: str) -> None:
    of_off, of_on = LOST[lost]
    derived = decided(of_off, of_on)
    assert compare(slow_exact("c", {"off": of_off, "on": of_on}, TOLERANCE), derived) == []
    row = derived.row
    assert (row["verdict"], row["reasons"], row["proposals"]) == ("INVALID", ["unit-lost"], None)
    for key in ("unexplored", "runs", "leaves", "outcomes", "crash_mass"):
        assert (row[key]["off"] is None, row[key]["on"] is None) == (of_off is None, of_on is None), key


def test_numbers_of_a_witness() -> None:
    row = decided(off(), on(branches=became(CRASH, 2, branches=became(D, 1, 4)))).row
    assert row["tv_lower"] == pytest.approx(0.5, abs=1e-15)
    assert row["tv_upper"] - row["tv_lower"] <= 1e-15
    assert [(w["outcome"], w["predicate"]) for w in row["witnesses"]] == [(D, "horizon"), (D, "letters")]
    assert row["witness_mass"] == row["witnesses"][0]["p"] == pytest.approx(0.25, abs=1e-15)
    assert row["crash_mass"] == {"off": 0.0, "on": 0.25}
    assert row["outcomes"] == {"off": 3, "on": 3}
    # `one`, `long` and `crash` among others gain or lose a quarter; `two` loses C, `other` stays.
    assert row["D"] == pytest.approx(0.25, abs=1e-15)
    assert row["oracle"] == {"outcomes": 3, "largest": pytest.approx(0, abs=1e-15)}


def test_the_counters_of_closed_leaves_are_not_summed() -> None:
    row = decided(off(closed_at=(0,)), on(closed_at=(1, 2))).row
    assert (row["proposals"], row["verifications"], row["accepted"]) == (6, 3, 3)
    assert (row["runs"], row["leaves"]) == ({"off": 2, "on": 3}, {"off": 3, "on": 5})


def test_what_is_unexplored_widens_the_interval_on_both_sides() -> None:
    bounded = off(branches=OFF[:2], unexplored=0.25), on(branches=without(became(D, 0), 4), unexplored=1 / 12)
    row = decided(*bounded).row
    # off: A 1/2, B 1/4; on: D 1/3, A 1/6, B 1/6, C 1/4: D' = 1/3 + 1/12.
    assert row["tv_lower"] == pytest.approx(5 / 12 - 1 / 12, abs=1e-14)
    assert row["tv_upper"] == pytest.approx(5 / 12 + 1 / 4, abs=1e-14)
    assert row["oracle"] == {"outcomes": 3, "largest": pytest.approx(0, abs=1e-15)}
    # C and D are `other`: 7/12 on the on arm, and at most what is unexplored on the off arm.
    assert (row["D_event"], row["D_complement"]) == ("other", False)
    assert row["D"] == pytest.approx(7 / 12 - 1 / 4, abs=1e-14)
    other = off(branches=without(became(D, 0), 4), unexplored=1 / 12), on(branches=OFF[:2], unexplored=0.25)
    back = decided(*other, law=None).row
    # The other way round its complement loses them, less what may be unexplored on the on arm.
    assert (back["D_event"], back["D_complement"]) == ("other", True)
    assert back["D"] == pytest.approx(7 / 12 - 1 / 4, abs=1e-14)


def test_the_tolerance_itself() -> None:
    """A total variation that is the tolerance is within it; the next number below it is not."""
    tv = 2.0**-20
    halves = off(branches=[([0], "t", [0.5], A), ([1], "t", [0.5], C)])
    apart = on(branches=[([0], "t", [0.5 + tv], A), ([1], "t", [0.5 - tv], C)])
    at = decided(halves, apart, law=None, tolerance=tv).row
    assert (at["tv_lower"], at["tv_upper"], at["verdict"]) == (tv, tv, "EQUAL_WITHIN_TOLERANCE")
    below = math.nextafter(tv, 0)
    assert decided(halves, apart, law=None, tolerance=below).row["verdict"] == "DEPARTS"


def test_without_a_reference_nothing_is_compared_with_it() -> None:
    halves = off(branches=[([0], "t", [0.5], A), ([1], "t", [0.5], C)])
    row = decided(halves, on(), law=None).row
    assert (row["oracle"], row["verdict"], row["masses"][0]["p"]) == (None, "DEPARTS", None)
    assert decided(halves, on()).row["verdict"] == "VOID"


def test_an_outcome_that_the_off_arm_never_has_is_compared_too() -> None:
    """Every outcome of the off arm is within 1e-6 of the reference; one that it lacks is not."""
    law = [{"outcome": outcome, "p": p - 6e-7} for outcome, p in ((A, 0.5), (B, 0.25), (C, 0.25))]
    law.append({"outcome": STRANGE, "p": 1.8e-6})
    row = decided(off(), on(), law=law).row
    assert (row["verdict"], row["oracle"]) == ("VOID", {"outcomes": 4, "largest": 1.8e-6})


def test_the_oracle_of_a_bounded_tree() -> None:
    """What is unexplored may be any outcome: it excuses what lacks, not what is too much."""
    more = decided(off(branches=[([0], "t", [0.75], A)], unexplored=0.25), on()).row
    assert more["oracle"] == {"outcomes": 3, "largest": 0.25}
    short = decided(off(branches=SHORT, unexplored=0.125), on()).row
    assert short["oracle"] == {"outcomes": 3, "largest": 0.25}
    within = decided(off(branches=[([0], "t", [0.25], A)], unexplored=0.75), on()).row
    assert within["oracle"] == {"outcomes": 3, "largest": 0.0}


def test_the_reference_of_an_event_is_at_most_1() -> None:
    law = [LAW[0] | {"p": 0.5 + 5e-7}, *LAW[1:]]
    derived = decided(off(), on(), law=law)
    assert max(row["p"] for row in derived.row["masses"]) == 1.0
    assert compare(slow_exact("c", {"off": off(), "on": on()}, TOLERANCE, law), derived) == []


def test_a_predicate_that_the_off_arm_violates_makes_no_witness() -> None:
    short = {"tokens": [9], "finish": None}
    law = [{"outcome": short, "p": 0.25}, *LAW[:2]]
    both = off(branches=became(short, 2, branches=OFF)), on(branches=became(D, 1, branches=became(short, 2)))
    row = decided(*both, law=law).row
    assert [w["predicate"] for w in row["witnesses"]] == ["horizon"]
    assert row["witness_mass"] == row["witnesses"][0]["p"]


def test_witnesses_come_by_mass_then_bytes() -> None:
    longer = D | {"tokens": [*D["tokens"], 4]}
    rare = [
        ([0], "t", [0.5], A), ([1], "t", [0.125], longer), ([2], "t", [0.125], D),
        ([3], "t", [0.25], D | {"finish": "x"}),
    ]  # fmt: skip
    found = decided(off(), on(branches=rare)).row["witnesses"]
    assert [w["outcome"] for w in found[::2]] == [D | {"finish": "x"}, longer, D]
    assert [w["p"] for w in found] == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]


def test_an_empty_tree_is_none() -> None:
    empty: Json = {"leaves": [], "meta": off()["meta"] | {"unexplored": 1}}
    assert not is_tree(read(empty, "off"))
    assert not slow_is_tree([], 1)
    assert decided(empty, on(), law=None).row["reasons"] == ["tree"]


def test_a_node_must_be_whole_only_where_nothing_is_unexplored() -> None:
    """However little is left: it may be what the node of a rare choice lacks."""
    rare: list[Branch] = [([0], "t", [1 - 1e-9], A), ([1, 0], "tt", [1e-9, 0.5], C)]
    for unexplored, expected in ((5e-10, True), (0, False)):
        leaves = off(branches=rare, unexplored=unexplored)
        assert is_tree(read(leaves, "off")) is expected
        assert slow_is_tree(leaves["leaves"], unexplored) is expected


def test_events_that_tie_but_for_rounding_may_be_named_either_way() -> None:
    derived = decided(off(), on())
    assert len({round(member.gap, 12) for member in derived.family}) == 1
    for event, complement in (("b", True), ("long", False)):
        assert compare(derived.row | {"D_event": event, "D_complement": complement}, derived) == []
    assert compare(derived.row | {"D_event": "none"}, derived)
    apart = decided(off(), on(branches=became(D, 1)))
    assert compare(apart.row | {"D_event": "two"}, apart)


GOOD = [A, B, A, C] * 10
WITNESS = [A, D, A, C] * 10
DEPARTING = on(branches=became(D, 1, 4))
NEARLY = bent(2, 1, 0.5 - 8e-10)
"""The on arm, of which 4e-10 are left."""
VOID = off(**{"replay": {"checked": 0}})
PREMISE: dict[str, tuple[Any, Any, Any, Any, str, list[str]]] = {
    "drawn from the tree": (off(), on(), GOOD, GOOD, "NOT_REJECTED", ["none"]),
    "drawn from a tree that departs": (off(), DEPARTING, GOOD, WITNESS, "NOT_REJECTED", ["none"]),
    "one draw outside": (off(), on(), GOOD, [*GOOD[:39], STRANGE], "FAILS", ["outside-law"]),
    "one draw outside, off arm": (off(), on(), [*GOOD[:39], STRANGE], GOOD, "FAILS", ["outside-law"]),
    "one crash": (off(), on(), GOOD, [*GOOD[:39], CRASH], "FAILS", ["outside-law", "bound"]),
    "always the same draw": (off(), on(), GOOD, [A] * 40, "FAILS", ["bound"]),
    "never a draw": (off(), on(), [B, C] * 20, GOOD, "FAILS", ["bound"]),
    "both": (off(), on(), GOOD, [STRANGE] * 40, "FAILS", ["outside-law", "bound"]),
    "outside a bounded tree": (
        off(branches=OFF[:2], unexplored=0.25), on(), GOOD, GOOD, "NOT_REJECTED", ["none"],
    ),
    "outside a tree of which hardly anything is unexplored": (
        off(), on(branches=NEARLY, unexplored=4e-10), GOOD, [*GOOD[:39], STRANGE], "NOT_REJECTED", ["none"],
    ),
    "outside a tree that rounding leaves short": (
        off(), on(branches=NEARLY), GOOD, [*GOOD[:39], STRANGE], "FAILS", ["outside-law"],
    ),
    "beyond what is unexplored": (
        off(branches=OFF[:2], unexplored=0.25), on(), [C] * 40, GOOD, "FAILS", ["bound"],
    ),
    "the tree is void": (VOID, on(), GOOD, [STRANGE] * 40, "NOT_TESTED", ["not-admitted"]),
    "a lost tree": (off(), None, GOOD, GOOD, "INVALID", ["unit-lost"]),
    "a lost draw": (off(), on(), None, GOOD, "INVALID", ["unit-lost"]),
    "a void tree and a lost draw": (VOID, on(), GOOD, None, "INVALID", ["unit-lost"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PREMISE)
def test_the_premise(name: str) -> None:
    of_off, of_on, drawn_off, drawn_on, status, reasons = PREMISE[name]
    trees, draws = {"off": of_off, "on": of_on}, {"off": drawn_off, "on": drawn_on}
    found = premise_of(of_off, of_on, draws)
    assert (found.row["status"], found.row["reasons"]) == (status, reasons)
    assert found.row["level"] == 0.05 / (1 * 4 * 10)
    verdict = slow_exact("c", trees, TOLERANCE)["verdict"]
    assert compare_premise(slow_premise("c", verdict, trees, draws, 0.05 / 40), found) == []
    if status in ("INVALID", "NOT_TESTED"):
        assert (found.row["off"], found.row["on"]) == (None, None)


def test_a_premise_that_fails_changes_no_verdict() -> None:
    assert decided(off(), on()).row["verdict"] == "EQUAL_WITHIN_TOLERANCE"
    assert premise_of(off(), on(), {"off": GOOD, "on": [STRANGE] * 40}).row["status"] == "FAILS"


def test_events_of_the_premise_may_tie() -> None:
    found = premise_of(off(), on(), {"off": GOOD, "on": GOOD})
    event, excesses = found.row["off"]["event"], found.excesses["off"]
    tied = [name for name, excess in excesses.items() if abs(excess - excesses[event]) < 1e-12]
    others = [name for name in excesses if name not in tied]
    assert len(tied) > 1 and others
    for name in excesses:
        claimed = copy.deepcopy(found.row)
        claimed["off"]["event"] = name
        assert bool(compare_premise(claimed, found)) is (name in others), name
    claimed = found.row | {"on": None}
    assert compare_premise(claimed, found)


def test_the_premise_is_tested_where_both_channels_are() -> None:
    plan = study()
    assert [c["id"] for c in plan.tested] == ["c"]
    assert study(premise_alpha=None).tested == []


@pytest.mark.parametrize("arm", ["off", "on"])
def test_both_trees_of_the_fixture_are_trees(arm: str) -> None:
    assert is_tree(read(off() if arm == "off" else on(), arm))
    assert len(ON) == 5
