"""The exact stage against its slow twin, on random trees that are whole, cut short, altered or lost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.synthetic import SEAL, draws_of
from bench.trees import GOOD, exact_study, leaf, unit_tree
from prereg.analyse.decide import decide
from prereg.analyse.laws import arm_law, law_of, tv_interval
from prereg.analyse.shape import shape_fault
from prereg.analyse.tally import tally
from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.model import law
from prereg.model.law import Crashed, Decoded, Family, Mass, Outcome, Predicate
from prereg.model.study import Study
from prereg.model.tree import PathCheck, TreeLeaf, UnitTree
from prereg.model.verdict import Decisions
from prereg.seal.agree import differences
from tests.unit.exact_twin import decide_slowly, is_tree

OUTCOMES: tuple[Outcome, ...] = (
    Decoded(tokens=(0,), finish="stop"),
    Decoded(tokens=(1,), finish="length"),
    Decoded(tokens=(1,), finish=None),
    Decoded(tokens=(1, 1), finish="length"),
    Decoded(tokens=(1, 1, 0), finish="stop"),
    Decoded(tokens=(), finish=None),
    Crashed(crash="KeyError"),
)
EVENTS: tuple[law.Event, ...] = (
    law.OutcomeEvent(id="zero", outcome=OUTCOMES[0]),
    law.OutcomeEvent(id="one", outcome=OUTCOMES[1]),
    law.OtherEvent(id="other"),
    law.PrefixEvent(id="starts", tokens=(1,)),
    law.LongerEvent(id="longer", than=1),
    law.FinishEvent(id="unfinished", equals=None),
    law.CrashEvent(id="crash"),
    law.ViolationEvent(id="violation"),
    law.SetEvent(id="set", outcomes=(OUTCOMES[0], OUTCOMES[4]), hypothesis=None),
)
PREDICATES = (
    Predicate(id="short", statement="-", source="-", rule=law.MaxTokens(n=2)),
    Predicate(id="early", statement="-", source="-", rule=law.NoEarlyEnd(n=3, end=(0,))),
)
ROWS = ((1.0,), (0.5, 0.5), (0.25, 0.75), (0.1, 0.2, 0.7), (0.3, 0.7), (1e-7, 1 - 1e-7), (1e-12, 1 - 1e-12))
UNITS = ("walk.c.off", "walk.c.on")


@st.composite
def trees(draw: st.DrawFn, outcomes: tuple[Outcome, ...] = OUTCOMES, proposes: bool = True) -> UnitTree:
    """A whole tree: every choice has a row of its own, and every leaf some outcome."""
    leaves: list[TreeLeaf] = []

    def grow(choices: tuple[int, ...], p: tuple[float, ...], kinds: str) -> None:
        if len(choices) == 3 or draw(st.integers(0, 2)) == 0:
            proposals = draw(st.integers(0, 2)) if proposes else 0
            leaves.append(
                leaf(
                    choices, p, draw(st.sampled_from(outcomes)), kinds=kinds, proposals=proposals,
                    verifications=min(1, proposals), accepted=draw(st.integers(0, proposals)),
                    closed=draw(st.booleans()),
                )
            )  # fmt: skip
            return
        kind = draw(st.sampled_from("tdr"))
        for index, q in enumerate(draw(st.sampled_from(ROWS))):
            grow((*choices, index), (*p, q), kinds + kind)

    grow((), (), "")
    return unit_tree(leaves, runs=draw(st.integers(1, 50)))


def shortened(tree: UnitTree, keep: list[bool]) -> UnitTree:
    """Some leaves left out, their mass unexplored."""
    kept = [one for one, stays in zip(tree.leaves, keep, strict=False) if stays]
    left = max(0.0, 1 - math.fsum(math.prod(one.p) for one in kept))
    return UnitTree(leaves=tuple(kept), meta=replace(tree.meta, unexplored=left))


@st.composite
def altered(draw: st.DrawFn) -> UnitTree:
    """A tree of some arm: whole, cut short, with one thing amiss, or not admitted."""
    tree = draw(trees())
    if draw(st.booleans()):
        tree = shortened(tree, draw(st.lists(st.booleans(), min_size=27, max_size=27)))
    if not tree.leaves:
        return tree
    at = draw(st.integers(0, len(tree.leaves) - 1))
    one = tree.leaves[at]
    first = one.p[0] if one.p else 1.0
    changed: dict[str, Any] = draw(
        st.sampled_from(
            [
                {},
                {"leaf": replace(one, p=(*one.p, 1.0), choices=(*one.choices, 0), kinds=f"{one.kinds}t")},
                {"leaf": replace(one, p=(*one.p[:-1], 0.4) if one.p else ())},
                {"leaf": replace(one, p=(min(1.0, first * (1 + 1e-8)), *one.p[1:]) if one.p else ())},
                {"leaf": replace(one, kinds="b" + one.kinds[1:] if one.kinds else "")},
                {"leaf": replace(one, choices=one.choices[:-1], p=one.p[:-1], kinds=one.kinds[:-1])},
                {"without": True},
                {"unexplored": 0.25},
                {"unexplored": 1e-10},
                {"admission": replace(GOOD, walk=replace(GOOD.walk, differences=1, ok=False))},
                {"admission": replace(GOOD, interference=PathCheck(checked=0, differences=0, ok=True))},
                {"admission": replace(GOOD, replay=PathCheck(checked=0, differences=0, ok=True))},
                {"admission": replace(GOOD, refill=replace(GOOD.refill, eligible=2))},
                {"admission": replace(GOOD, refill=replace(GOOD.refill, eligible=2, checked=1))},
                {"admission": replace(GOOD, closed=replace(GOOD.closed, closed=2))},
                {"admission": replace(GOOD, closed=replace(GOOD.closed, closed=2, checked=1))},
            ]
        )
    )
    leaves = list(tree.leaves)
    if "leaf" in changed:
        leaves[at] = changed["leaf"]
    if "without" in changed:
        del leaves[at]
    meta = replace(
        tree.meta,
        unexplored=changed.get("unexplored", tree.meta.unexplored),
        admission=changed.get("admission", GOOD),
    )
    return UnitTree(leaves=tuple(leaves), meta=meta)


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[Study, dict[str, UnitTree], dict[str, list[Outcome]], frozenset[str]]:
    walked = {unit: draw(altered()) for unit in UNITS}
    if draw(st.booleans()):
        walked[UNITS[1]] = walked[UNITS[0]]
    reference: tuple[Mass, ...] | None = None
    match draw(st.integers(0, 2)):
        case 1:
            reference = tuple(Mass(outcome=y, p=min(1.0, p)) for y, p in law_of(walked[UNITS[0]]).items())
        case 2:
            reference = (Mass(outcome=OUTCOMES[0], p=0.5), Mass(outcome=OUTCOMES[1], p=0.5))
    tested = draw(st.booleans())
    family = Family(reference=reference, events=tuple(draw(st.permutations(EVENTS))))
    draws = {
        unit: draw(st.lists(st.sampled_from(OUTCOMES), min_size=20, max_size=60)) if tested else []
        for unit in ("main.c.off", "main.c.on")
    }
    plan = exact_study(
        {"c": family},
        drawn=["c"] if tested else (),
        draws=(len(draws["main.c.off"]) or 1, len(draws["main.c.on"]) or 1),
        premise_alpha=0.2 if tested else None,
        predicates=draw(st.permutations(PREDICATES)),
        rule="channel-S" if reference is not None else "event-gap",
        tolerance=draw(st.sampled_from([1e-5, 1e-9, 0.1])),
    )
    units = [unit.id for unit in plan.protocol.units()]
    lost = draw(st.sampled_from([[], [], [], [], *([unit] for unit in units), units]))
    return plan, walked, draws, frozenset(lost)


def decided(
    plan: Study, walked: dict[str, UnitTree], draws: dict[str, list[Outcome]], lost: frozenset[str]
) -> Decisions:
    tallies = {
        unit: tally(unit, draws_of(unit, [(y, 1) for y in drawn])) for unit, drawn in draws.items() if drawn
    }
    kept = {unit: tree for unit, tree in walked.items() if unit not in lost}
    return decide(plan, SEAL, tallies, lost, kept)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_the_analysis_says_what_its_slow_twin_says(
    case: tuple[Study, dict[str, UnitTree], dict[str, list[Outcome]], frozenset[str]],
) -> None:
    plan, walked, draws, lost = case
    found = decided(plan, walked, draws, lost)
    data = dump_file(to_json(found))
    assert read_machine(data, "decisions", Decisions, where="-") == found
    assert differences(to_json(found.exact), decide_slowly(plan, walked, draws, lost)) == []


@settings(max_examples=75, deadline=None)
@given(altered(), st.randoms(use_true_random=False))
def test_the_order_of_leaves_changes_nothing(tree: UnitTree, random: Any) -> None:
    leaves = list(tree.leaves)
    random.shuffle(leaves)
    other = UnitTree(leaves=tuple(leaves), meta=tree.meta)
    one, two = arm_law(tree), arm_law(other)
    assert (one.mass, one.slack, one.fault is None) == (two.mass, two.slack, two.fault is None)
    assert (shape_fault(leaves, tree.meta.unexplored) is None) == is_tree(tree)


@settings(max_examples=100, deadline=None)
@given(trees(), trees(), st.data())
def test_the_interval_holds_every_completion(off: UnitTree, on: UnitTree, data: st.DataObject) -> None:
    """Cut both trees short: the distance of the whole laws lies in the interval of what is left."""
    keep = st.lists(st.booleans(), min_size=27, max_size=27)
    parts = [arm_law(shortened(tree, data.draw(keep))) for tree in (off, on)]
    low, high = tv_interval(parts[0], parts[1])
    a, b = law_of(off), law_of(on)
    truth = 0.5 * math.fsum(abs(a.get(y, 0.0) - b.get(y, 0.0)) for y in a.keys() | b.keys())
    assert low - 1e-12 <= truth <= high + 1e-12


@settings(max_examples=75, deadline=None)
@given(trees(), trees(), st.data())
def test_a_decision_on_a_part_is_never_taken_back(off: UnitTree, on: UnitTree, data: st.DataObject) -> None:
    """DEPARTS and EQUAL_WITHIN_TOLERANCE on bounded trees hold on the whole ones."""
    plan = exact_study({"c": Family(reference=None, events=EVENTS)}, tolerance=0.05, rule="event-gap")
    keep = st.lists(st.integers(0, 5).map(bool), min_size=27, max_size=27)
    part = {UNITS[0]: shortened(off, data.draw(keep)), UNITS[1]: shortened(on, data.draw(keep))}
    verdicts = []
    for walked in (part, dict(zip(UNITS, (off, on), strict=True))):
        exact = decided(plan, walked, {}, frozenset()).exact
        assert exact is not None
        verdicts.append(exact.configurations[0].verdict)
    if verdicts[0] in ("DEPARTS", "EQUAL_WITHIN_TOLERANCE"):
        assert verdicts[1] == verdicts[0]


@settings(max_examples=100, deadline=None)
@given(trees(), trees())
def test_swapping_the_arms_keeps_the_distance_of_whole_trees(off: UnitTree, on: UnitTree) -> None:
    one, two = arm_law(off), arm_law(on)
    low, high = tv_interval(one, two)
    assert math.isclose(low, tv_interval(two, one)[0], abs_tol=1e-12)
    assert high - low <= one.slack + two.slack + 1e-12
