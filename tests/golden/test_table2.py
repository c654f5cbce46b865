"""Numbers of the paper's Table 2 that follow from its counts alone, whatever the models' weights are.

A count of draws becomes a bound at level alpha/(m·B), and B is four times the number of events, of which most
are outcomes: how many there are is a matter of vocabulary, horizon and features, not of probabilities.
"""

from __future__ import annotations

import itertools

import pytest

from prereg.draft.family import family
from prereg.model.law import Decoded, Mass
from prereg.stats.budget import bounds_of, level_of
from prereg.stats.exact import lower, upper

DRAWS = 200_000


def level(size: int, horizon: int) -> float:
    """The level of one bound in a plain configuration of the study: m = 26, alpha = 0.05."""
    end = size - 1
    outcomes = [
        tokens
        for length in range(1, horizon + 1)
        for tokens in itertools.product(range(size), repeat=length)
        if end not in tokens[:-1] and (length == horizon or tokens[-1] == end)
    ]
    law = [
        Mass(
            outcome=Decoded(tokens=tokens, finish="eos" if tokens[-1] == end else "length"),
            p=1 / len(outcomes),
        )
        for tokens in outcomes
    ]
    return level_of(0.05, 26, bounds_of(family(law, horizon=horizon)))


def test_d_of_the_release_that_overshoots_is_the_bound_on_too_long_outcomes() -> None:
    """HF12-P2: 623 witnesses, none with speculation off."""
    a = level(7, 3)
    assert round(lower(623, DRAWS, a) - upper(0, DRAWS, a), 4) == 0.0025


@pytest.mark.parametrize(("size", "horizon"), [(7, 3), (10, 4)])
def test_d_of_what_is_not_rejected_is_that_of_an_event_that_never_occurred(size: int, horizon: int) -> None:
    """Every family has such an event, the crash: L_on is 0, and U_off that of no draw at all."""
    assert round(-upper(0, DRAWS, level(size, horizon)), 4) == -0.0001
