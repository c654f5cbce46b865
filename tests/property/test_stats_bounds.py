"""What must hold of every bound and every power, over generated cases."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prereg.stats.exact import lower, lowers, upper, uppers
from prereg.stats.power import (
    Design,
    Rejection,
    detectable_gap,
    detectable_witness,
    gap_power,
    masses,
    tails,
    window,
    witness_power,
)

LEVELS = st.floats(min_value=1e-9, max_value=0.3)
SIZES = st.integers(min_value=1, max_value=1_000_000)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(SIZES)
    return draw(st.integers(min_value=0, max_value=n)), n


@given(counts(), LEVELS)
def test_a_bound_is_on_its_side_of_the_rate(kn: tuple[int, int], level: float) -> None:
    k, n = kn
    assert 0 <= lower(k, n, level) <= k / n <= upper(k, n, level) <= 1


@given(counts(), LEVELS)
def test_complement_symmetry(kn: tuple[int, int], level: float) -> None:
    k, n = kn
    assert math.isclose(1 - upper(n - k, n, level), lower(k, n, level), abs_tol=1e-12)


@given(st.integers(1, 400), LEVELS)
def test_bounds_rise_with_the_count(n: int, level: float) -> None:
    k = np.arange(n + 1)
    assert np.all(np.diff(lowers(k, n, level)) > 0)
    assert np.all(np.diff(uppers(k, n, level)) > 0)


@given(counts(), LEVELS, LEVELS)
def test_a_smaller_level_is_more_careful(kn: tuple[int, int], one: float, two: float) -> None:
    k, n = kn
    strict, loose = min(one, two), max(one, two)
    assert lower(k, n, strict) <= lower(k, n, loose) * (1 + 1e-11)
    assert upper(k, n, strict) >= upper(k, n, loose) * (1 - 1e-11)


@given(st.integers(1, 40), st.floats(0.001, 0.999), st.floats(1e-4, 0.3))
def test_coverage_by_summation(n: int, p: float, level: float) -> None:
    """The chance that a bound lies on the wrong side of p, summed over all counts, is at most the level."""
    chance = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    above = sum(c for k, c in enumerate(chance) if lower(k, n, level) > p)
    below = sum(c for k, c in enumerate(chance) if upper(k, n, level) < p)
    assert above <= level * (1 + 1e-9)
    assert below <= level * (1 + 1e-9)


@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(1e-4, 0.3),
    st.floats(0, 0.5),
)
def test_power_by_summation(
    n_off: int, n_on: int, p_off: float, p_on: float, level: float, threshold: float
) -> None:
    total = 0.0
    for i in range(n_off + 1):
        for j in range(n_on + 1):
            gap = lower(j, n_on, level) - upper(i, n_off, level)
            if gap > threshold:
                total += (
                    math.comb(n_off, i) * p_off**i * (1 - p_off) ** (n_off - i)
                    * math.comb(n_on, j) * p_on**j * (1 - p_on) ** (n_on - j)
                )  # fmt: skip
    design = Design(n_off=n_off, n_on=n_on, level=level, threshold=threshold)
    assert math.isclose(gap_power(design, p_off, p_on), total, rel_tol=1e-9, abs_tol=1e-13)


@given(st.integers(1, 1_000_000), st.floats(0, 1))
def test_a_window_leaves_out_next_to_nothing(n: int, p: float) -> None:
    first, end = window(n, p)
    assert 0 <= first <= n * p <= end - 1 <= n
    k = np.array([first, end])
    outside = 1 - tails(k, n, p)[0] + tails(k, n, p)[1]
    assert outside <= 1e-13
    assert math.isclose(masses(np.arange(first, end), n, p).sum(), 1, abs_tol=1e-7)


@given(
    st.integers(20, 3000), st.floats(0, 0.9), st.floats(1e-6, 0.05), st.floats(0, 0.05), st.floats(0.1, 0.99)
)
def test_the_detectable_gap_is_where_power_turns(
    n: int, p_off: float, level: float, threshold: float, target: float
) -> None:
    design = Design(n_off=n, n_on=n, level=level, threshold=threshold)
    gap = detectable_gap(design, p_off, target)
    if gap is None:
        assert gap_power(design, p_off, 1.0) < target
        return
    rejection = Rejection(design, p_off)
    assert rejection.power(min(1.0, p_off + gap)) >= target
    assert gap <= 2e-6 or rejection.power(p_off + gap - 2e-6) < target


@given(st.integers(1, 1_000_000), st.floats(0.01, 0.999))
def test_witness_power_and_its_inverse(n: int, target: float) -> None:
    assert math.isclose(witness_power(detectable_witness(n, target), n), target, rel_tol=1e-9)


def test_certain_witness() -> None:
    assert witness_power(1.0, 1) == 1
    assert witness_power(0.5, 2) == 0.75
