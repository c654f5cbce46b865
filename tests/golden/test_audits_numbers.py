"""Published numbers that the auditor's own endpoints must reproduce."""

from __future__ import annotations

import pytest

from audits.interval import lower, upper

TAIL = 0.05 / 6


@pytest.mark.parametrize(
    ("k", "low", "high"),
    [(823, 77.2287, 83.2620), (145, 11.6540, 16.9638), (833, 78.2583, 84.1774)],
)
def test_intervals_of_1024(k: int, low: float, high: float) -> None:
    assert round(100 * lower(k, 1024, TAIL), 4) == low
    assert round(100 * upper(k, 1024, TAIL), 4) == high


def test_gaps_of_1024() -> None:
    assert round(100 * (lower(823, 1024, TAIL) - upper(145, 1024, TAIL)), 4) == 60.2649
    assert round(100 * (upper(823, 1024, TAIL) - lower(145, 1024, TAIL)), 4) == 71.6080
    assert round(100 * (upper(833, 1024, TAIL) - lower(823, 1024, TAIL)), 4) == 6.9487


def test_no_witness_in_many_draws() -> None:
    level = 0.05 / (3 * 15)
    assert f"{upper(0, 200_000, level):.1e}" == "3.4e-05"
    assert f"{upper(0, 1_000_000, level):.1e}" == "6.8e-06"


def test_small_samples() -> None:
    assert round(lower(5, 5, 0.025), 3) == 0.478
    assert upper(5, 5, 0.025) == 1.0
    assert round(lower(2, 2, 0.025), 3) == 0.158
    assert upper(2, 2, 0.025) == 1.0
    assert round(upper(0, 10, 0.05), 3) == 0.259
    assert round(upper(1, 10, 0.05), 3) == 0.394
