"""One case of a sweep: real walks over a small decoder, and what its row says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from prereg.analyse.exact import TOLERANCE
from prereg.collect import sweep_case
from prereg.collect.activity import ACTIVE, distance
from prereg.collect.sweep_case import Screened, run_case, verdict_of
from prereg.collect.sweep_walk import Lane
from prereg.collect.worker import WorkerRefused
from prereg.model.law import Decoded
from prereg.model.sweep import Row
from prereg.model.tree import ExactResult, ExactVerdict
from tests.unit.sweep_fixture import TRIES, Judge, LocalLane, case


@pytest.fixture(autouse=True)
def few_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small decoder has some ten outcomes."""
    monkeypatch.setattr(sweep_case, "OUTCOMES", 5)


def swept(features: dict[str, Any], beside: dict[str, Any] | None = None, **change: Any) -> Row:
    return run_case(case(features, beside, **change), cast(Lane, LocalLane()), Judge())


def test_an_active_feature_without_fault_is_equal_on_two_tries() -> None:
    row = swept({"model": 1})
    assert row.verdict == "EQUAL_WITHIN_TOLERANCE", row.reason
    assert row.attempts == row.agreeing == 2
    assert row.activity["model"] > 0.01
    assert row.outcomes >= 5 and row.proposals > 0 and row.accepted > 0
    assert row.runs_off > 0 and row.runs_on > 0
    assert row.failing_path is None


def test_a_fault_departs_at_once_and_shows_a_path() -> None:
    row = swept({"model": 1, "fault": "buffer"})
    assert row.verdict == "DEPARTS"
    assert row.attempts == 1
    assert row.tv_lower is not None and row.tv_lower > 0.01
    assert row.failing_path is not None and row.failing_path["choices"]


def test_equality_of_a_feature_that_changes_nothing_is_inconclusive() -> None:
    row = swept({"idle": True})
    assert row.verdict == "INCONCLUSIVE"
    assert row.reason == "equal, but idle changed nothing on the best try"
    assert row.attempts == 2


def test_each_feature_of_a_pair_must_be_active() -> None:
    row = swept({"model": 1, "idle": True})
    assert row.verdict == "INCONCLUSIVE" and "idle changed nothing" in row.reason
    assert row.activity["model"] > 0.01


def test_what_stands_beside_need_not_be_active() -> None:
    assert swept({"model": 1}, {"idle": True}).verdict == "EQUAL_WITHIN_TOLERANCE"


def test_equality_without_proposals_is_inconclusive() -> None:
    row = swept({"model": 1}, {"mode": "off"})
    assert row.verdict == "INCONCLUSIVE" and "proposed nothing" in row.reason


def test_equality_over_few_outcomes_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_case, "OUTCOMES", 1000)
    row = swept({"model": 1})
    assert row.verdict == "INCONCLUSIVE" and "outcomes" in row.reason


def test_a_crash_under_speculation_alone_is_the_features_own_verdict() -> None:
    row = swept({"raises": "on"})
    assert row.verdict == "CRASHES"
    assert row.crash_on == {"IndexError": 1.0} and row.crash_off == {}
    assert row.failing_path is not None and row.failing_path["outcome"] == {"crash": "IndexError"}


def judged(verdict: ExactVerdict = "EQUAL_WITHIN_TOLERANCE", **change: Any) -> ExactResult:
    """What the exact channel might say."""
    values: dict[str, Any] = {
        "verdict": verdict,
        "reason": "a reason",
        "tolerance": 1e-5,
        "tv_lower": 0.0,
        "tv_upper": 0.0,
        "off": (),
        "on": (),
        "slack_off": 0.0,
        "slack_on": 0.0,
        "witness_mass": 0.0,
        "event": None,
        "event_gap": None,
        "event_gap_lower": None,
        "event_gap_upper": None,
        "proposals": 7,
        "accepted": 3,
    }
    return ExactResult(**{**values, **change})


def others(features: dict[str, Any]) -> list[Screened]:
    """The tries but for the first, as screened."""
    lane = cast(Lane, LocalLane())
    return [sweep_case.screen(case(features), one, lane, Judge()) for one in TRIES[1:]]


def active() -> Screened:
    return Screened(tried=TRIES[0], features=("model",), activity={"model": 0.5}, outcomes=30)


@pytest.mark.parametrize(
    ("activity", "reason"),
    [
        ({}, "whether model changes anything could not be told"),
        ({"model": 0.0}, "model changed nothing"),
        # Above the tolerance's noise, but an engine that lost the feature would hardly depart.
        ({"model": 5e-4}, "model changed the law by no more than 0.0005"),
    ],
)
def test_equality_needs_every_feature_seen_to_be_active(activity: dict[str, float], reason: str) -> None:
    screened = replace(active(), activity=activity)
    assert verdict_of(judged(), screened, {}, {}) == ("INCONCLUSIVE", f"equal, but {reason} on the best try")
    assert not screened.telling
    assert verdict_of(judged(), active(), {}, {})[0] == "EQUAL_WITHIN_TOLERANCE"


def test_an_activity_is_far_above_the_tolerance() -> None:
    assert ACTIVE >= 100 * TOLERANCE


def test_a_screening_that_is_refused_gives_no_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise WorkerRefused("engine", "no")

    monkeypatch.setattr(sweep_case, "screen", refused)
    row = swept({"model": 1})
    assert row.verdict == "INCONCLUSIVE" and "could not be told" in row.reason
    assert row.attempts == sweep_case.SILENT


def test_what_two_walks_left_unexplored_is_no_activity() -> None:
    one, two, three = (Decoded(tokens=(n,), finish=None) for n in (1, 2, 3))
    assert distance({one: 0.5}, {two: 0.5}) == 0.0
    assert distance({one: 0.75, two: 0.25}, {one: 0.25, two: 0.25}) == 0.0
    assert distance({one: 0.9}, {two: 0.8, three: 0.1}) == pytest.approx(0.8)
    assert distance({one: 1.0}, {one: 0.4, two: 0.6}) == pytest.approx(0.6)
    assert distance({one: 0.4, two: 0.3}, {one: 1.0}) == pytest.approx(0.3)
    assert distance({one: 1.0}, {one: 0.4, two: 0.3}) == pytest.approx(0.3)


def test_a_crash_that_the_unexplored_off_arm_may_have_too_is_none_of_speculation() -> None:
    partial = judged("INCONCLUSIVE", slack_off=0.3)
    assert verdict_of(partial, active(), {}, {"IndexError": 0.25})[0] == "INCONCLUSIVE"
    verdict, reason = verdict_of(partial, active(), {}, {"IndexError": 0.35})
    assert verdict == "CRASHES" and "never" not in reason and "without it with mass at most 0.3" in reason
    assert "without it never" in verdict_of(judged("DEPARTS"), active(), {}, {"IndexError": 0.1})[1]


def test_crashes_of_trees_that_are_not_admitted_prove_nothing() -> None:
    assert verdict_of(judged("VOID"), active(), {}, {"IndexError": 1.0})[0] == "VOID"
    both = {"IndexError": 1.0}
    assert verdict_of(judged("VOID"), active(), both, both)[0] == "VOID"


def test_a_crash_of_both_arms_says_so() -> None:
    row = swept({"raises": "both"})
    assert row.verdict == "BOTH_CRASH"
    assert row.crash_on == row.crash_off == {"IndexError": 1.0}
    assert row.attempts == len(TRIES)


@pytest.mark.parametrize(
    ("then", "verdict"),
    [
        ({"model": 1, "fault": "buffer"}, "DEPARTS"),
        ({"model": 1}, "EQUAL_WITHIN_TOLERANCE"),
        ({"idle": True}, "INCONCLUSIVE"),
    ],
)
def test_a_try_that_crashes_on_both_arms_does_not_speak_for_the_others(
    monkeypatch: pytest.MonkeyPatch, then: dict[str, Any], verdict: str
) -> None:
    lane = LocalLane()
    opened = lane.open

    def crashing_on_the_first(features: Any, tried: Any) -> None:
        opened({"raises": "both"} if tried == TRIES[0] else features, tried)

    monkeypatch.setattr(lane, "open", crashing_on_the_first)
    monkeypatch.setattr(sweep_case, "_worth_walking", lambda *_: iter([active(), *others(then)]))
    row = run_case(case(then), cast(Lane, lane), Judge())
    assert (row.verdict, row.tried == TRIES[0]) == (verdict, False)


def test_a_worker_that_dies_again_on_one_request_is_a_crash() -> None:
    row = swept({"dies": "always"})
    assert row.verdict == "CRASHES" and "SIGSEGV" in row.reason


def test_a_worker_that_dies_once_is_no_verdict_on_the_engine() -> None:
    assert swept({"dies": "once"}).verdict == "VOID"


def test_a_refused_feature_is_inconclusive_and_says_who_refused() -> None:
    row = swept({"refused": 1})
    assert row.verdict == "INCONCLUSIVE" and row.reason.startswith("refused: features.refused")


def test_a_telling_try_is_walked_before_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feature is silent on the first try."""
    lane = LocalLane()
    opened = lane.open

    def silent_on_the_first(features: Any, tried: Any) -> None:
        opened({} if tried == TRIES[0] else features, tried)

    monkeypatch.setattr(lane, "open", silent_on_the_first)
    row = run_case(case({"model": 1}, tries=TRIES[:2]), cast(Lane, lane), Judge())
    assert row.verdict == "EQUAL_WITHIN_TOLERANCE" and row.tried == TRIES[1]
    assert row.attempts == 2 and row.agreeing == 1
    assert lane.speculated == [TRIES[1], TRIES[0]]


def test_deterministic_tries_count_in_place_of_outcomes() -> None:
    from prereg.collect.sweep_case import ONE_OUTCOME, _together

    one = replace(
        swept({"model": 1}),
        verdict="INCONCLUSIVE",
        reason=ONE_OUTCOME,
        outcomes=1,
        accepted=3,
        activity={"model": 0.5},
    )
    greedy = case({"model": 1}, deterministic=True)
    assert _together(greedy, [one] * 12).verdict == "EQUAL_WITHIN_TOLERANCE"
    assert _together(greedy, [one] * 12).outcomes == 12
    assert _together(greedy, [one] * 9).verdict == "INCONCLUSIVE"
    assert _together(greedy, [replace(one, accepted=0)] * 12).verdict == "INCONCLUSIVE"
    unknown = replace(one, activity={})
    assert _together(greedy, [unknown] * 12).verdict == "INCONCLUSIVE"
    assert _together(greedy, [*[unknown] * 11, one]).activity == {"model": 0.5}
    void = replace(one, verdict="VOID", reason="not admitted")
    assert _together(greedy, [*[one] * 12, void]).verdict != "EQUAL_WITHIN_TOLERANCE"
    departs = replace(one, verdict="DEPARTS", reason="")
    assert _together(greedy, [*[one] * 12, departs]).verdict == "DEPARTS"
