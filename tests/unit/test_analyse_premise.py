"""Draws beside the laws of the trees, and studies that have both channels (section 14)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exact_kit import BAD, EDGE, EVEN, EVENTS, FAIR, HALF, HEADS, TAILS, admission, both, coin, exact_of

from bench.synthetic import SEAL, tally_of
from bench.trees import exact_study
from prereg.analyse.decide import decide
from prereg.errors import EvidenceIncomplete
from prereg.model.exact import PremiseArm
from prereg.model.law import Family, Mass, Outcome
from prereg.model.predictions import CountClaim, Prediction, VerdictClaim
from prereg.model.study import Stage


def test_both_channels_of_one_study() -> None:
    found = both(HALF, HALF)
    assert found.m == 1
    assert [(d.id, d.verdict) for d in found.configurations] == [("c", "NOT_REJECTED")]
    exact = exact_of(found)
    assert [(d.id, d.verdict) for d in exact.configurations] == [
        ("c", "EQUAL_WITHIN_TOLERANCE"), ("d", "EQUAL_WITHIN_TOLERANCE"),
    ]  # fmt: skip
    assert exact.premise is not None and (exact.premise.alpha, exact.premise.m) == (0.05, 1)
    (test,) = exact.premise.configurations
    assert (test.id, test.status, test.reasons) == ("c", "NOT_REJECTED", ("none",))
    assert test.level == 0.05 / (1 * 4 * 5)
    assert test.off is not None and test.off == test.on
    assert (test.off.draws, test.off.outside, test.off.event) == (1000, 0, "other")
    # Both bounds of what never happened lie at the mass 0 of the tree or around it.
    assert test.off.excess == 0.0


@pytest.mark.parametrize(
    ("on", "status", "reasons", "outside", "event"),
    [
        ([(HEADS, 600), (TAILS, 400)], "FAILS", ("bound",), 0, "heads"),
        ([(HEADS, 400), (TAILS, 600)], "FAILS", ("bound",), 0, "heads"),
        ([(HEADS, 500), (TAILS, 499), (EDGE, 1)], "FAILS", ("outside-law", "bound"), 1, "other"),
        ([(HEADS, 1000)], "FAILS", ("bound",), 0, "heads"),
        ([(HEADS, 540), (TAILS, 460)], "NOT_REJECTED", ("none",), 0, "other"),
    ],
)
def test_draws_that_do_not_follow_the_tree(
    on: list[tuple[Outcome, int]], status: str, reasons: tuple[str, ...], outside: int, event: str
) -> None:
    found = both(HALF, on)
    premise = exact_of(found).premise
    assert premise is not None
    (test,) = premise.configurations
    assert (test.status, test.reasons) == (status, reasons)
    assert test.on is not None and (test.on.outside, test.on.event) == (outside, event)
    assert exact_of(found).configurations[0].verdict == "EQUAL_WITHIN_TOLERANCE"


def test_unexplored_mass_excuses_draws_outside_the_tree() -> None:
    on = coin((0.5, HEADS), (0.4, TAILS), unexplored=0.1)
    found = both(HALF, [(HEADS, 500), (TAILS, 400), (EDGE, 100)], walked={"walk.c.on": on})
    premise = exact_of(found).premise
    assert premise is not None and premise.configurations[0].status == "NOT_REJECTED"
    assert premise.configurations[0].on == PremiseArm(
        draws=1000, outside=0, excess=pytest.approx(-0.00597, abs=1e-5), event="crash"
    )


def test_a_draw_of_what_little_is_unexplored_is_not_outside_the_law() -> None:
    """A walk that stopped at a billionth knows that there is more; a whole one knows that there is not."""
    for left, outside in ((1e-10, 0), (0.0, 1)):
        on = coin((0.5, HEADS), (0.5 - 1e-10, TAILS), unexplored=left)
        found = both(HALF, [(HEADS, 500), (TAILS, 499), (EDGE, 1)], walked={"walk.c.on": on})
        premise = exact_of(found).premise
        assert premise is not None
        (tested,) = premise.configurations
        assert tested.on is not None and tested.on.outside == outside
        assert ("outside-law" in tested.reasons) == bool(outside)


@pytest.mark.parametrize("unit", ["main.c.off", "main.c.on", "walk.c.off", "walk.c.on"])
def test_a_lost_unit_of_either_channel_leaves_no_test(unit: str) -> None:
    found = both(HALF, HALF, lost=frozenset([unit]))
    exact = exact_of(found)
    assert exact.premise is not None
    (test,) = exact.premise.configurations
    assert (test.status, test.reasons, test.off, test.on) == ("INVALID", ("unit-lost",), None, None)
    walked = unit.startswith("walk")
    assert found.configurations[0].verdict == ("NOT_REJECTED" if walked else "INVALID")
    assert exact.configurations[0].verdict == ("INVALID" if walked else "EQUAL_WITHIN_TOLERANCE")


def test_a_tree_that_is_not_admitted_tests_nothing() -> None:
    found = both(HALF, HALF, walked={"walk.c.on": coin(*EVEN, admission=admission(replay=BAD))})
    premise = exact_of(found).premise
    assert premise is not None
    assert (premise.configurations[0].status, premise.configurations[0].reasons) == (
        "NOT_TESTED", ("not-admitted",),
    )  # fmt: skip


def test_a_missing_tree_is_refused_or_bounded() -> None:
    family = {"c": Family(reference=None, events=EVENTS)}
    with pytest.raises(EvidenceIncomplete, match=r"walk\.c\.on has no tree"):
        decide(exact_study(family), SEAL, {}, set(), {"walk.c.off": FAIR})
    found = decide(exact_study(family, missing="bound"), SEAL, {}, set(), {"walk.c.off": FAIR})
    assert exact_of(found).configurations[0].verdict == "INVALID"


def test_a_claim_speaks_of_its_channel() -> None:
    predictions = [
        Prediction(
            id=f"{name}-{channel}",
            statement="-",
            claim=VerdictClaim(configuration="c", in_=(verdict,), channel=channel),
        )
        for name, verdict in (("right", "x"), ("wrong", "VOID"))
        for channel in ("draws", "exact")
    ]
    right = {"draws": "NOT_REJECTED", "exact": "EQUAL_WITHIN_TOLERANCE"}
    predictions = [
        replace(p, claim=replace(p.claim, in_=(right[p.claim.channel],)))
        if p.id.startswith("right") and isinstance(p.claim, VerdictClaim)
        else p
        for p in predictions
    ]
    count = CountClaim(
        configurations=("c", "d"), verdict="EQUAL_WITHIN_TOLERANCE", at_least=2, channel="exact"
    )
    predictions.append(Prediction(id="count", statement="-", claim=count))
    found = both(HALF, HALF, predictions=predictions)
    assert [(p.id, p.status) for p in found.predictions] == [
        ("right-draws", "HELD"), ("right-exact", "HELD"), ("wrong-draws", "FAILED"),
        ("wrong-exact", "FAILED"), ("count", "HELD"),
    ]  # fmt: skip
    found = both(HALF, HALF, predictions=predictions, lost=frozenset(["walk.d.on"]))
    assert found.predictions[-1].status == "NOT_DETERMINED"


def test_two_stages_of_draws_share_one_budget() -> None:
    family = Family(reference=(Mass(outcome=HEADS, p=0.5), Mass(outcome=TAILS, p=0.5)), events=EVENTS)
    plan = exact_study({"c": family, "d": family}, drawn=["c"], draws=1000)
    second = Stage(id="more", purpose="discovery", configurations=("d",))
    plan = replace(plan, protocol=replace(plan.protocol, stages=(*plan.protocol.stages, second)))
    units = ("main.c.off", "main.c.on", "more.d.off", "more.d.on")
    tallies = {unit: tally_of(unit, HALF, proposals=1) for unit in units}
    trees = {f"walk.{c}.{arm}": coin(*EVEN) for c in "cd" for arm in ("off", "on")}
    found = decide(plan, SEAL, tallies, set(), trees)
    assert (found.m, [d.id for d in found.configurations]) == (2, ["c", "d"])
    assert {d.level for d in found.configurations} == {0.05 / (2 * 4 * 5)}
