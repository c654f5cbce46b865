"""The first analysis and the auditor compute the same endpoints, by code that shares nothing."""

from __future__ import annotations

import itertools

import pytest

from audits import interval
from prereg.stats import exact

SIZES = (1, 2, 5, 10, 40, 1_024, 2_000, 20_000, 200_000, 1_000_000)
LEVELS = (0.05, 0.05 / 6, 0.025, 0.05 / 45, 7.86e-6, 0.05 / (26 * 1280), 1e-9)


def counts(n: int) -> list[int]:
    return sorted(
        {0, 1, 2, n // 1000, n // 100, n // 10, n // 3, n // 2, n - n // 7, n - 2, n - 1, n}
        & set(range(n + 1))
    )


@pytest.mark.parametrize("n", SIZES)
def test_endpoints_agree(n: int) -> None:
    for k, level in itertools.product(counts(n), LEVELS):
        assert exact.lower(k, n, level) == pytest.approx(interval.lower(k, n, level), abs=1e-10), (
            k,
            n,
            level,
        )
        assert exact.upper(k, n, level) == pytest.approx(interval.upper(k, n, level), abs=1e-10), (
            k,
            n,
            level,
        )
