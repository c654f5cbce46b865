"""The power table and the reach of a study's decisions."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from bench.synthetic import enumerated_family, study, tokens
from prereg.model.law import CrashEvent, Family, Mass, MaxTokens, OutcomeEvent, Predicate, PrefixEvent
from prereg.stats.power import (
    RATES,
    Design,
    base_rates,
    detectable_gap,
    gap_power,
    power_table,
    reach_table,
    witness_power,
)

SHORT = Predicate(id="short", statement="at most one token", source="-", rule=MaxTokens(n=1))


def coin(p: float = 0.5) -> Family:
    """One of two outcomes, one of them listed."""
    return Family(
        reference=(Mass(outcome=tokens(1), p=p), Mass(outcome=tokens(2), p=1 - p)),
        events=(OutcomeEvent(id="one", outcome=tokens(1)), CrashEvent(id="crash")),
    )


def test_rows_stand_for_the_range_of_the_family() -> None:
    whole = enumerated_family(4, 2, seed=3)
    always = PrefixEvent(id="always", tokens=())
    plan = study({"c": replace(whole, events=(*whole.events, always))}, draws=2000)
    rates = base_rates(plan, plan.protocol.configurations[0])
    assert [r for r, _ in rates] == sorted({r for r, _ in rates})
    assert rates[0][0] == 0 and rates[-1] == (1, "always")
    rows = power_table(plan)
    assert [(r.base_rate, r.base_event) for r in rows] == rates
    last = rows[-1]
    assert (last.detectable_gap, last.power_at_planned_gap) == (None, None)


def test_a_row_is_what_its_functions_say() -> None:
    plan = study({"c": coin(0.25)}, draws=(3000, 4000), predicates=[SHORT])
    row = power_table(plan)[-1]
    design = Design(n_off=3000, n_on=4000, level=0.05 / 8, threshold=0.01)
    assert row.base_rate == 0.25 and row.base_event == "one"
    assert row.detectable_gap == detectable_gap(design, 0.25, 0.9)
    assert row.power_at_planned_gap == pytest.approx(gap_power(design, 0.25, 0.3), rel=1e-12)
    assert row.witness_power == witness_power(0.001, 4000)
    assert row.level == 0.05 / 8


def test_without_a_law_the_rates_are_fixed_and_no_witness_is_promised() -> None:
    family = Family(reference=None, events=coin().events)
    rows = power_table(study({"c": family}, rule="event-gap", predicates=[SHORT]))
    assert tuple(r.base_rate for r in rows) == RATES
    assert {r.base_event for r in rows} == {None}
    assert {r.witness_power for r in rows} == {r.detectable_witness for r in rows} == {None}


@pytest.mark.parametrize(("draws", "seconds"), [(2_000, 3), (20_000, 3), (200_000, 30)])
def test_the_table_is_made_while_one_waits(draws: int, seconds: float) -> None:
    plan = study({f"c{i}": enumerated_family(7, 3, seed=i) for i in range(5)}, draws=draws)
    start = time.perf_counter()
    power_table(plan)
    assert time.perf_counter() - start < seconds


def test_scale_of_what_two_hundred_thousand_draws_see() -> None:
    """Half the time: the published heuristic, for a larger family, says 0.011 to 0.022 by base rate."""
    design = Design(n_off=200_000, n_on=200_000, level=0.05 / (26 * 1300), threshold=0.01)
    gaps = [detectable_gap(design, p, 0.5) for p in (0.0, 0.5)]
    assert [f"{g:.3f}" for g in gaps if g is not None] == ["0.011", "0.020"]


def test_both_verdicts_in_reach() -> None:
    reach = reach_table(study({"c": coin()}, draws=2000, predicates=[SHORT]))[0]
    assert (reach.rejection, reach.acceptance, reach.exercised) == ("both", True, True)


@pytest.mark.parametrize(
    ("draws", "predicates", "rule", "rejection"),
    [
        (3, [], "channel-S", "none"),
        (3, [SHORT], "channel-S", "witness"),
        (3, [SHORT], "event-gap", "none"),
        (100, [], "channel-S", "bound"),
        (100, [], "event-gap", "bound"),
    ],
)
def test_too_few_draws_reject_nothing_without_a_witness(draws, predicates, rule, rejection) -> None:  # type: ignore[no-untyped-def]
    reach = reach_table(study({"c": coin()}, draws=draws, predicates=predicates, rule=rule))[0]
    assert (reach.rejection, reach.acceptance, reach.exercised) == (rejection, True, True)


def test_nothing_proposes_without_a_drafter() -> None:
    for rule, exercised in (("channel-S", False), ("event-gap", True)):
        reach = reach_table(study({"c": coin()}, rule=rule, drafter=False))[0]  # type: ignore[arg-type]
        assert reach.exercised == exercised


def test_a_law_that_breaks_its_own_predicate_is_void() -> None:
    family = Family(
        reference=(Mass(outcome=tokens(1), p=0.9), Mass(outcome=tokens(1, 1), p=0.1)), events=coin().events
    )
    reach = reach_table(study({"c": family}, draws=1000, predicates=[SHORT]))[0]
    assert (reach.expected_violations, reach.acceptance) == (100, False)
