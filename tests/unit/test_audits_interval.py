"""Clopper-Pearson endpoints against scipy's quantiles."""

from __future__ import annotations

import random
import time

import pytest
from scipy.stats import beta

from audits.interval import lower, upper

LEVELS = [1e-10, 1e-8, 7.8125e-6, 1e-4, 0.05 / 6, 0.05, 0.3, 0.5, 0.9]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 33, 100, 1024, 11_000, 200_000, 1_000_000])
@pytest.mark.parametrize("level", LEVELS)
def test_both_endpoints_on_a_grid(n: int, level: float) -> None:
    rng = random.Random(n)
    ks = {0, 1, 2, 3, n // 1000, n // 100, n // 10, n // 3, n // 2, n - 2, n - 1, n}
    for k in sorted(k for k in ks | {rng.randrange(n + 1) for _ in range(5)} if 0 <= k <= n):
        low = 0.0 if k == 0 else beta.ppf(level, k, n - k + 1)
        high = 1.0 if k == n else beta.isf(level, k + 1, n - k)
        assert lower(k, n, level) == pytest.approx(low, rel=0, abs=1e-12), k
        assert upper(k, n, level) == pytest.approx(high, rel=0, abs=1e-12), k


def test_the_smallest_endpoints_keep_their_relative_precision() -> None:
    for k in (1, 2, 5):
        for n in (100, 1_000_000):
            assert lower(k, n, 1e-10) == pytest.approx(beta.ppf(1e-10, k, n - k + 1), rel=1e-9)


@pytest.mark.parametrize(("k", "n", "level"), [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0), (1, 5, 1)])
def test_nonsense_is_refused(k: int, n: int, level: float) -> None:
    with pytest.raises(ValueError, match="no endpoint"):
        lower(k, n, level)


def test_a_study_of_three_thousand_endpoints_takes_seconds() -> None:
    start = time.perf_counter()
    for k in range(1500):
        lower(7 * k + 1, 200_000, 6.1e-6)
        upper(7 * k + 1, 200_000, 6.1e-6)
    assert time.perf_counter() - start < 10
