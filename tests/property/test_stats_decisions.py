"""D does not depend on the order of draws, of listed events, or on which side of an event is listed."""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from bench.synthetic import SEAL, draws_of, study, tokens
from prereg.analyse.decide import decide
from prereg.analyse.tally import tally
from prereg.model.law import Family, Mass, Outcome, OutcomeEvent, SetEvent
from prereg.model.verdict import Decision

OUTCOMES: tuple[Outcome, ...] = (tokens(0), tokens(1), tokens(2), tokens(0, 1))
REFERENCE = tuple(Mass(outcome=o, p=0.25) for o in OUTCOMES)
COUNTS = st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(any)


def decided(
    events: tuple[OutcomeEvent | SetEvent, ...], off: list[int], on: list[int], seed: int = 0
) -> Decision:
    """The decision on shuffled draws with these counts of each outcome."""
    plan = study({"c": Family(reference=REFERENCE, events=events)}, draws=(sum(off), sum(on)), allowance=1.0)
    tallies = {}
    for unit, counts in (("main.c.off", off), ("main.c.on", on)):
        records = list(draws_of(unit, list(zip(OUTCOMES, counts, strict=True))))
        random.Random(seed).shuffle(records)
        tallies[unit] = tally(unit, records)
    return decide(plan, SEAL, tallies, set()).configurations[0]


SINGLES = tuple(OutcomeEvent(id=f"e{i}", outcome=o) for i, o in enumerate(OUTCOMES))


@given(COUNTS, COUNTS, st.integers(0, 100))
def test_the_order_of_draws_changes_nothing(off: list[int], on: list[int], seed: int) -> None:
    assert decided(SINGLES, off, on, seed) == decided(SINGLES, off, on)


@given(COUNTS, COUNTS, st.permutations(range(4)))
def test_the_order_of_events_changes_no_number(off: list[int], on: list[int], order: list[int]) -> None:
    one, two = decided(SINGLES, off, on), decided(tuple(SINGLES[i] for i in order), off, on)
    assert (one.D, one.verdict, one.eligible) == (two.D, two.verdict, two.eligible)
    assert sorted(one.bounds, key=lambda r: r.event) == sorted(two.bounds, key=lambda r: r.event)


@given(COUNTS, COUNTS, st.sets(st.integers(0, 3)))
def test_listing_the_complement_instead_changes_no_number(
    off: list[int], on: list[int], turned: set[int]
) -> None:
    others = tuple(
        SetEvent(id=f"e{i}", outcomes=tuple(o for o in OUTCOMES if o != e.outcome), hypothesis=None)
        if i in turned
        else e
        for i, e in enumerate(SINGLES)
    )
    one, two = decided(SINGLES, off, on), decided(others, off, on)
    assert one.D is not None and two.D is not None
    assert math.isclose(one.D, two.D, abs_tol=1e-11)
    assert one.D_event == two.D_event
    assert one.calibration is not None and two.calibration is not None
    assert math.isclose(one.calibration.excess, two.calibration.excess, abs_tol=1e-11)
    assert one.calibration.event == two.calibration.event


@given(COUNTS, COUNTS)
def test_d_is_the_largest_gap_of_the_family(off: list[int], on: list[int]) -> None:
    decision = decided(SINGLES, off, on)
    gaps = [r.L_on - r.U_off for r in decision.bounds] + [
        (1 - r.U_on) - (1 - r.L_off) for r in decision.bounds
    ]
    assert max(gaps) == decision.D
    assert -1 <= decision.D <= 1


@given(COUNTS, COUNTS)
def test_swapping_the_arms_turns_every_event_into_its_complement(off: list[int], on: list[int]) -> None:
    """No event's gap exceeds 0 in both directions."""
    one, two = decided(SINGLES, off, on), decided(SINGLES, on, off)
    for a, b in zip(one.bounds, two.bounds, strict=True):
        assert (a.L_on, a.U_on) == (b.L_off, b.U_off)
        assert not (a.L_on > a.U_off and b.L_on > b.U_off)
