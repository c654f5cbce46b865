"""The exact stage on trees made by hand: every rule, every reason, and where each begins (section 14)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exact_kit import (
    BAD,
    CRASH,
    EDGE,
    EVEN,
    FAIR,
    HEADS,
    ONLY,
    SHORT,
    TAILS,
    TILTED,
    UNSEEN,
    admission,
    coin,
    decided,
)

from bench.trees import GOOD, leaf, unit_tree
from prereg.analyse.laws import arm_law, tv_interval
from prereg.analyse.shape import shape_fault
from prereg.codec.convert import to_json
from prereg.model.arms import Shares
from prereg.model.exact import OracleGap
from prereg.model.law import Decoded, Mass
from prereg.model.tree import TreeLeaf, UnitTree

TWO = leaf((0, 0), (0.5, 1.0), HEADS, proposals=1)


def test_golden_a_coin_by_hand() -> None:
    """Off: heads or tails, evenly. On: the drafter's head is taken with 3/4 and kept in 4 of 5 cases; what is
    refused falls on the edge, which is one token too long, or breaks down.

    Heads 3/4 * 4/5 = 0.6; edge 3/4 * 1/5 = 0.15; tails 1/4 * 1/2 and a crash 1/4 * 1/2, 0.125 each. Total
    variation 0.375 (tails fall from 0.5 to 0.125). The largest gap is that of not-tails.
    """
    on = unit_tree(
        [
            leaf((0, 0), (0.75, 0.8), HEADS, kinds="da", proposals=1, verifications=1, accepted=1),
            leaf((0, 1), (0.75, 0.2), EDGE, kinds="da", proposals=1, verifications=1),
            leaf((1, 0), (0.25, 0.5), TAILS, kinds="dr", proposals=2, verifications=1),
            leaf((1, 1), (0.25, 0.5), CRASH, kinds="dr", proposals=7, accepted=5, closed=True),
        ],
        runs=3,
    )
    found = decided(FAIR, on, reference=(Mass(outcome=HEADS, p=0.5), Mass(outcome=TAILS, p=0.5)))
    value = to_json(found)
    masses = value.pop("masses")
    numbers = {name: value.pop(name) for name in ("tv_lower", "tv_upper", "D", "witness_mass")}
    assert numbers == pytest.approx({"tv_lower": 0.375, "tv_upper": 0.375, "D": 0.375, "witness_mass": 0.15})
    (witness,) = value.pop("witnesses")
    assert witness == {"outcome": to_json(EDGE), "predicate": "short", "p": pytest.approx(0.15)}
    assert value == {
        "id": "c",
        "verdict": "DEPARTS",
        "reasons": ["total-variation", "witness"],
        "unexplored": {"off": 0.0, "on": 0.0},
        "runs": {"off": 2, "on": 3},
        "leaves": {"off": 2, "on": 4},
        "outcomes": {"off": 2, "on": 4},
        "proposals": 4,
        "verifications": 3,
        "accepted": 1,
        "crash_mass": {"off": 0.0, "on": 0.125},
        "D_event": "tails",
        "D_complement": True,
        "oracle": {"outcomes": 2, "largest": 0.0},
    }
    assert [(m["event"], m["p"], m["off"]) for m in masses] == [
        ("heads", 0.5, 0.5), ("tails", 0.5, 0.5), ("other", 0.0, 0.0), ("longer", 0.0, 0.0), ("crash", 0, 0),
    ]  # fmt: skip
    assert [m["on"] for m in masses] == pytest.approx([0.6, 0.125, 0.15, 0.15, 0.125])


ROWS: dict[str, tuple[UnitTree | None, UnitTree | None, str, tuple[str, ...]]] = {
    "the off unit is lost": (None, coin(*EVEN), "INVALID", ("unit-lost",)),
    "the on unit is lost": (FAIR, None, "INVALID", ("unit-lost",)),
    "no leaf": (FAIR, unit_tree([], unexplored=1.0), "VOID", ("tree",)),
    "an off leaf is missing": (coin((0.5, HEADS)), coin(*EVEN), "VOID", ("tree",)),
    "no tree, and a check failed": (
        FAIR,
        coin((0.5, HEADS), admission=admission(replay=BAD)),
        "VOID",
        ("tree", "admission"),
    ),
    "nothing was replayed": (FAIR, coin(*EVEN, admission=admission(replay=UNSEEN)), "VOID", ("admission",)),
    "interference was not looked at": (
        FAIR,
        coin(*EVEN, admission=admission(interference=UNSEEN)),
        "VOID",
        ("admission",),
    ),
    "no filled row was filled otherwise": (
        FAIR,
        coin(*EVEN, admission=admission(refill=replace(GOOD.refill, eligible=1))),
        "VOID",
        ("admission",),
    ),
    "no closed leaf was run, in the reference arm": (
        coin(*EVEN, admission=admission(closed=replace(GOOD.closed, closed=1))),
        coin(*EVEN),
        "VOID",
        ("admission",),
    ),
    "some filled rows were filled otherwise, and some closed leaves run": (
        FAIR,
        coin(
            *EVEN,
            admission=admission(
                refill=replace(GOOD.refill, eligible=9, checked=2),
                closed=replace(GOOD.closed, closed=9, checked=1),
            ),
        ),
        "EQUAL_WITHIN_TOLERANCE",
        ("within-tolerance",),
    ),
    "nothing was proposed": (FAIR, coin(*TILTED, proposals=0), "INCONCLUSIVE", ("nothing-proposed",)),
    "void comes before nothing proposed": (FAIR, coin((0.5, HEADS), proposals=0), "VOID", ("tree",)),
    "another law": (FAIR, coin(*TILTED), "DEPARTS", ("total-variation",)),
    "another law and a witness": (
        FAIR, coin((0.5, HEADS), (0.5, EDGE)), "DEPARTS", ("total-variation", "witness"),
    ),
    "a witness of little mass": (
        FAIR, coin((0.5, HEADS), (0.499999, TAILS), (1e-6, EDGE)), "DEPARTS", ("witness",),
    ),
    "the off arm breaks the rule too": (
        coin((0.5, HEADS), (0.499998, TAILS), (2e-6, Decoded(tokens=(0, 0), finish=None)), proposals=0),
        coin((0.5, HEADS), (0.499998, TAILS), (2e-6, EDGE)),
        "EQUAL_WITHIN_TOLERANCE",
        ("within-tolerance",),
    ),
    "what is unexplored may hold the witness": (
        coin((0.5, HEADS), (0.499998, TAILS), unexplored=2e-6, proposals=0),
        coin((0.5, HEADS), (0.499998, TAILS), (2e-6, EDGE)),
        "EQUAL_WITHIN_TOLERANCE",
        ("within-tolerance",),
    ),
    "one law": (FAIR, coin(*EVEN), "EQUAL_WITHIN_TOLERANCE", ("within-tolerance",)),
    "one law by other choices": (
        FAIR,
        unit_tree([TWO, leaf((1, 0), (0.5, 0.25), TAILS), leaf((1, 1), (0.5, 0.75), TAILS)]),
        "EQUAL_WITHIN_TOLERANCE",
        ("within-tolerance",),
    ),
    "too little is explored": (FAIR, coin((0.5, HEADS), unexplored=0.5), "INCONCLUSIVE", ("interval",)),
    "enough is explored": (FAIR, coin((0.9, HEADS), unexplored=0.1), "DEPARTS", ("total-variation",)),
    "an arm without choices": (
        unit_tree([leaf((), (), HEADS)]),
        unit_tree([leaf((), (), HEADS, proposals=3)]),
        "EQUAL_WITHIN_TOLERANCE",
        ("within-tolerance",),
    ),
    "only closed leaves propose": (
        FAIR,
        unit_tree([leaf((0,), (0.5,), HEADS), leaf((1,), (0.5,), TAILS, proposals=1, closed=True)]),
        "INCONCLUSIVE",
        ("nothing-proposed",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_verdicts_and_reasons(name: str) -> None:
    off, on, verdict, reasons = ROWS[name]
    found = decided(off, on)
    assert (found.verdict, found.reasons) == (verdict, reasons)


@pytest.mark.parametrize("arm", ["off", "on"])
@pytest.mark.parametrize("check", ["walk", "replay", "refill", "closed", "randomness", "interference"])
def test_each_check_of_each_arm_voids(check: str, arm: str) -> None:
    bad = admission(**{check: replace(getattr(GOOD, check), ok=False)})
    trees = {"off": FAIR, "on": coin(*EVEN)}
    trees[arm] = replace(trees[arm], meta=replace(trees[arm].meta, admission=bad))
    found = decided(trees["off"], trees["on"])
    assert (found.verdict, found.reasons) == ("VOID", ("admission",))


def test_the_oracle_voids_beyond_a_millionth() -> None:
    for by, reasons in ((0.9e-6, ("within-tolerance",)), (1.1e-6, ("oracle",))):
        reference = (Mass(outcome=HEADS, p=0.5 + by), Mass(outcome=TAILS, p=0.5 - by))
        found = decided(FAIR, coin(*EVEN), reference=reference)
        assert found.reasons == reasons
        assert found.oracle is not None and found.oracle.largest == pytest.approx(by)


def test_the_oracle_looks_at_the_outcomes_of_either() -> None:
    only_off = (Mass(outcome=HEADS, p=0.5),)
    assert decided(FAIR, coin(*EVEN), reference=only_off).oracle == OracleGap(outcomes=1, largest=0.5)
    only_reference = (*(Mass(outcome=y, p=p) for p, y in EVEN), Mass(outcome=EDGE, p=0.25))
    assert decided(FAIR, coin(*EVEN), reference=only_reference).oracle == OracleGap(outcomes=3, largest=0.25)


def test_a_bounded_tree_is_held_to_the_oracle_as_far_as_it_goes() -> None:
    """Mass above P is too much whatever is unexplored; mass below it by more than that is too little."""
    law = (Mass(outcome=HEADS, p=0.5), Mass(outcome=TAILS, p=0.5))
    for off, largest in (
        (coin((0.5, HEADS), (0.3, TAILS), unexplored=0.2), 0.0),
        (coin((0.6, HEADS), (0.2, TAILS), unexplored=0.2), 0.1),
        (coin((0.5, HEADS), (0.1, EDGE), (0.1, TAILS), unexplored=0.3), 0.1),
        (coin((0.4, HEADS), (0.5, TAILS), (0.06, CRASH), unexplored=0.04), 0.06),
        (coin((0.5, HEADS), (0.45, TAILS), (0.02, CRASH), (0.01, EDGE), unexplored=0.02), 0.03),
    ):
        found = decided(off, coin(*EVEN), reference=law)
        assert found.oracle == OracleGap(outcomes=2, largest=pytest.approx(largest)), off
        assert (found.verdict, found.reasons) == (
            ("VOID", ("oracle",)) if largest else ("INCONCLUSIVE", ("interval",))
        )


@pytest.mark.parametrize(("tolerance", "verdict"), [(0.0625, "EQUAL_WITHIN_TOLERANCE"), (0.0624, "DEPARTS")])
def test_the_tolerance_itself_is_equal(tolerance: float, verdict: str) -> None:
    assert decided(FAIR, coin((0.5625, HEADS), (0.4375, TAILS)), tolerance=tolerance).verdict == verdict


def test_slack_goes_where_it_hurts_least() -> None:
    off = coin((0.5, HEADS), (0.25, TAILS), unexplored=0.25, proposals=0)
    on = coin((0.25, HEADS), (0.25, TAILS), (0.375, EDGE), unexplored=0.125)
    assert tv_interval(arm_law(off), arm_law(on)) == (0.125, 0.5)
    found = decided(off, on)
    assert (found.tv_lower, found.tv_upper) == (0.125, 0.5)
    assert found.unexplored == Shares(off=0.25, on=0.125)
    # longer: 0.375 on, at most 0.25 off; not-heads: 0.5 off at least of heads, at most 0.375 on.
    assert (found.D, found.D_event, found.D_complement) == (0.125, "heads", True)


def test_an_outcome_of_many_leaves_is_one() -> None:
    off, on, *_ = ROWS["one law by other choices"]
    found = decided(off, on)
    assert to_json(found.leaves) == {"off": 2, "on": 3}
    assert to_json(found.outcomes) == {"off": 2, "on": 2}
    assert to_json(decided(None, on).outcomes) == {"off": None, "on": 2}


def test_ties_go_to_the_first_event_and_to_the_event_itself() -> None:
    found = decided(FAIR, coin(*EVEN))
    assert (found.D, found.D_event, found.D_complement) == (0.0, "heads", False)
    found = decided(FAIR, coin((0.25, HEADS), (0.75, TAILS)))
    assert (found.D, found.D_event, found.D_complement) == (0.25, "heads", True)


def test_a_witness_that_breaks_two_rules_stands_twice_and_counts_once() -> None:
    off = coin((1.0, HEADS), proposals=0)
    crooked = Decoded(tokens=(2,), finish="length")
    on = coin((0.5, HEADS), (0.125, TAILS), (0.125, EDGE), (0.25, crooked))
    found = decided(off, on, predicates=(SHORT, ONLY))
    assert [(w.outcome, w.predicate, w.p) for w in found.witnesses] == [
        (crooked, "only", 0.25), (EDGE, "short", 0.125), (EDGE, "only", 0.125), (TAILS, "only", 0.125),
    ]  # fmt: skip
    assert found.witness_mass == 0.5


def test_a_lost_unit_leaves_the_numbers_of_the_other_arm() -> None:
    on = coin((0.5, HEADS), (0.25, CRASH), unexplored=0.25, runs=9)
    value = to_json(decided(None, on, reference=(Mass(outcome=HEADS, p=1.0),)))
    assert value == {
        "id": "c", "verdict": "INVALID", "reasons": ["unit-lost"], "tv_lower": None, "tv_upper": None,
        "unexplored": {"off": None, "on": 0.25}, "runs": {"off": None, "on": 9},
        "leaves": {"off": None, "on": 2}, "outcomes": {"off": None, "on": 2}, "proposals": None,
        "verifications": None, "accepted": None, "crash_mass": {"off": None, "on": 0.25}, "D": None,
        "D_event": None, "D_complement": None, "witness_mass": None, "witnesses": [], "oracle": None,
        "masses": [],
    }  # fmt: skip
    value = to_json(decided(FAIR, None))
    assert value["runs"] == {"off": 2, "on": None} and value["proposals"] is None


def test_what_a_false_tree_brings_beyond_one_is_written_as_one() -> None:
    off = unit_tree([leaf((0, i), (1.0, 1.0), HEADS) for i in range(3)])
    found = decided(off, coin(*EVEN), reference=(Mass(outcome=HEADS, p=0.5), Mass(outcome=TAILS, p=0.5)))
    assert (found.verdict, found.tv_lower, found.D) == ("VOID", 1.0, 1.0)
    assert (found.masses[0].off, found.oracle) == (1.0, OracleGap(outcomes=2, largest=1.0))


P = 1.0 / 3
FAULTS: dict[str, tuple[list[TreeLeaf], float, str]] = {
    "empty": ([], 1.0, "no leaf"),
    "twice the same": ([TWO, TWO], 0.0, "goes on where another ends"),
    "a leaf inside a way": (
        [leaf((0,), (0.5,), HEADS), TWO, leaf((1,), (0.5,), TAILS)], 0.0, "goes on where another ends",
    ),
    "a leaf at the root": ([leaf((), (), HEADS), leaf((0,), (1.0,), HEADS)], 0.0, "goes on where"),
    "far apart in order": (
        [leaf((0,), (0.5,), HEADS), leaf((0, 0, 1), (0.5, 1.0, 1.0), HEADS), leaf((1,), (0.5,), TAILS)],
        0.0,
        "goes on where another ends",
    ),
    "another probability on a shared way": (
        [leaf((0, 0), (0.5, 0.5), HEADS), leaf((0, 1), (0.25, 0.5), HEADS), leaf((1,), (0.5,), TAILS)],
        0.125,
        "other probabilities",
    ),
    "another kind on a shared way": (
        [leaf((0, 0), (1.0, 0.5), HEADS, kinds="ta"), leaf((0, 1), (1.0, 0.5), HEADS, kinds="da")],
        0.0,
        "another kind",
    ),
    "another kind of the next choice": (
        [leaf((0, 0), (1.0, 0.5), HEADS, kinds="ta"), leaf((0, 1), (1.0, 0.5), HEADS, kinds="tr")],
        0.0,
        "another kind",
    ),
    "children above one": (
        [leaf((0,), (0.5,), HEADS), leaf((1,), (0.5 + 3e-9,), TAILS)], 0.0, "0 choices deep sum to 1.0000",
    ),
    "children below one with nothing unexplored": (
        [leaf((0, 0), (1e-10, 0.5), HEADS), leaf((1,), (1 - 1e-10,), TAILS)], 0.0, "1 choices deep sum",
    ),
    "weights that do not add up": ([leaf((0,), (0.5,), HEADS)], 0.25, "sum to 0.75"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_leaves_that_are_no_tree(name: str) -> None:
    leaves, unexplored, says = FAULTS[name]
    for order in (leaves, leaves[::-1]):
        assert says in (shape_fault(order, unexplored) or "a tree")


@pytest.mark.parametrize(
    ("leaves", "unexplored"),
    [
        ([leaf((), (), HEADS)], 0.0),
        ([leaf((0,), (P,), HEADS), leaf((1,), (P,), TAILS), leaf((2,), (P,), EDGE)], 0.0),
        ([leaf((0,), (0.5,), HEADS), leaf((1,), (0.5 + 0.9e-9,), TAILS)], 0.0),
        ([leaf((0,), (0.5,), HEADS), leaf((1,), (0.5 - 0.9e-9,), TAILS)], 0.9e-9),
        ([leaf((0, 1), (0.5, 0.5), HEADS)], 0.75),
        # A light node may lack much of its row: all of it is unexplored.
        ([leaf((0,), (1 - 1e-9,), HEADS), leaf((1, 0), (1e-9, 0.5), TAILS)], 5e-10),
        ([leaf((0, 0), (0.5, 1.0), HEADS, kinds="ta"), leaf((1, 0), (0.5, 1.0), HEADS, kinds="tr")], 0.0),
    ],
)
def test_leaves_that_are_a_tree(leaves: list[TreeLeaf], unexplored: float) -> None:
    assert shape_fault(leaves, unexplored) is None
