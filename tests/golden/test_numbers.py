"""Published numbers that must come out to the digits given, whatever the engine does (paper).

Rows name the place. `tail` is the level of one endpoint.
"""

from __future__ import annotations

import pytest

from prereg.stats.budget import level_of
from prereg.stats.exact import lower, upper

TAIL = 0.05 / 6


@pytest.mark.parametrize(
    ("k", "low", "high"),
    [
        (823, "77.2287", "83.2620"),
        (145, "11.6540", "16.9638"),
        (833, "78.2583", "84.1774"),
    ],
)
def test_first_token_rows(k: int, low: str, high: str) -> None:
    """Supplement F: counts of 1,024 at tail 0.05/6, in percent."""
    assert f"{100 * lower(k, 1024, TAIL):.4f}" == low
    assert f"{100 * upper(k, 1024, TAIL):.4f}" == high


def test_first_token_gaps() -> None:
    """Supplement F: the gap between the ordinary and the native arm, and the control's bound, in points."""
    ordinary, native, control = (
        (100 * lower(k, 1024, TAIL), 100 * upper(k, 1024, TAIL)) for k in (823, 145, 833)
    )
    assert f"{ordinary[0] - native[1]:.4f}" == "60.2649"
    assert f"{ordinary[1] - native[0]:.4f}" == "71.6080"
    assert f"{max(control[1] - ordinary[0], ordinary[1] - control[0]):.4f}" == "6.9487"
    assert f"{100 * (833 - 823) / 1024:.4f}" == "0.9766"


@pytest.mark.parametrize(("draws", "bound"), [(200_000, "3.4e-05"), (1_000_000, "6.8e-06")])
def test_no_witness_seen(draws: int, bound: str) -> None:
    """Table 3: the upper bound on a witness rate of which no draw was seen, m = 3 and B = 15."""
    assert f"{upper(0, draws, level_of(0.05, 3, 15)):.1e}" == bound


@pytest.mark.parametrize(
    ("k", "n", "tail", "low", "high"),
    [
        (5, 5, 0.025, "0.478", "1.000"),
        (2, 2, 0.025, "0.158", "1.000"),
        (0, 10, 0.05, None, "0.259"),
        (1, 10, 0.05, None, "0.394"),
    ],
)
def test_small_cells(k: int, n: int, tail: float, low: str | None, high: str) -> None:
    """Campaign counts: two-sided 95 % for the first two, one-sided 95 % for the others."""
    if low is not None:
        assert f"{lower(k, n, tail):.3f}" == low
    assert f"{upper(k, n, tail):.3f}" == high
