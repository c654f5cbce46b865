"""Bounds against values computed with 50 digits, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from prereg.stats.budget import bounds_of, budget_of, level_of
from prereg.stats.exact import lower, lowers, upper, uppers

REFERENCE = [
    (1, 10, 1e-09, 1.0000000004500001e-10, 0.92194445570761898),
    (5, 10, 0.05, 0.22244110100812908, 0.77755889899187092),
    (10, 10, 1e-06, 0.25118864315095801, 1.0),
    (1, 1000000, 1e-09, 1.0000000004999996e-15, 2.3939453282185743e-5),
    (7, 200000, 7.8125e-06, 3.4304788066379064e-6, 0.00013226071121036319),
    (100000, 1000000, 1e-09, 0.098209891219203386, 0.10180956913352151),
    (500000, 1000000, 3e-11, 0.49672766701300139, 0.50327233298699861),
    (999999, 1000000, 1e-09, 0.99997606054671781, 0.999999999999999),
    (1000000, 1000000, 1e-09, 0.99997927694888844, 1.0),
    (145, 1024, 0.0001, 0.10405610441626773, 0.18591539305562178),
    (0, 200000, 1e-09, 0.0, 0.00010361096119830048),
]
"""k, n, level, L, U: roots of the binomial tails in 50-digit arithmetic."""


@pytest.mark.parametrize(("k", "n", "level", "low", "high"), REFERENCE)
def test_against_fifty_digits(k: int, n: int, level: float, low: float, high: float) -> None:
    assert lower(k, n, level) == pytest.approx(low, rel=2e-11, abs=0)
    assert upper(k, n, level) == pytest.approx(high, rel=2e-11, abs=0)


def test_arrays_keep_their_shape_and_broadcast() -> None:
    k = np.array([[0, 1, 5], [9, 10, 3]])
    low, high = lowers(k, 10, 0.01), uppers(k, 10, 0.01)
    assert low.shape == high.shape == (2, 3)
    assert low[0, 0] == 0 and high[1, 1] == 1
    assert [float(x) for x in low.ravel()] == [lower(int(i), 10, 0.01) for i in k.ravel()]
    assert [float(x) for x in high.ravel()] == [upper(int(i), 10, 0.01) for i in k.ravel()]
    assert lowers(2, np.array([2, 4, 8]), 0.1).shape == (3,)


@pytest.mark.parametrize(
    ("k", "n", "level"),
    [
        (-1, 10, 0.1),
        (11, 10, 0.1),
        (0, 0, 0.1),
        (1, 10, 0.0),
        (1, 10, 1.0),
        (1.5, 10, 0.1),
        (1, 10, float("nan")),
    ],
)
def test_counts_and_levels_that_do_not_exist(k: float, n: int, level: float) -> None:
    for bound in (lowers, uppers):
        with pytest.raises(ValueError):
            bound(k, n, level)


def test_the_budget_is_counted_from_the_family() -> None:
    from bench.synthetic import enumerated_family, study

    families = {name: enumerated_family(3, 1, seed=1) for name in ("a", "b", "c")}
    plan = study(families, alpha=0.03)
    listed = len(families["a"].events)
    assert bounds_of(families["a"]) == 4 * listed
    budget = budget_of(plan, "b")
    assert (budget.B, listed) == (4 * listed, len(families["b"].events))
    assert budget.level == 0.03 / (3 * 4 * listed)


@pytest.mark.parametrize(("alpha", "m", "B"), [(0, 1, 4), (1, 1, 4), (0.05, 0, 4), (0.05, 1, 0)])
def test_no_budget(alpha: float, m: int, B: int) -> None:
    with pytest.raises(ValueError):
        level_of(alpha, m, B)
