"""Laws from leaves, and bounds that hold whatever the unexplored part is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choices.law import failing, law, total_variation
from harness.choices.tree import Leaf


def leaf(value: int, weight: float, choices: tuple[int, ...] = (0,), **change: object) -> Leaf:
    fields: dict[str, object] = {
        "choices": choices,
        "kinds": ("token",) * len(choices),
        "p": (weight,) * len(choices),
        "weight": weight,
        "outcome": {"value": value},
        "counters": {"proposals": 1, "verifications": 1, "accepted": 0},
        "digest": "",
        "closed": False,
        "filled": 0,
    }
    return Leaf(**(fields | change))  # type: ignore[arg-type]


def numbers(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(min_value=0, max_value=20), min_size=size, max_size=size)


@settings(max_examples=200)
@given(a=numbers(4), b=numbers(4), u=numbers(6), v=numbers(6))
def test_the_interval_holds_the_truth(a: list[int], b: list[int], u: list[int], v: list[int]) -> None:
    """u and v, the unexplored parts, may fall on known outcomes (0 to 3) and on new ones (4, 5)."""
    total_on, total_off = sum(a) + sum(u), sum(b) + sum(v)
    if not total_on or not total_off:
        return
    off = law([leaf(value, mass / total_off) for value, mass in enumerate(b) if mass])
    on = law([leaf(value, mass / total_on) for value, mass in enumerate(a) if mass])
    whole_on = [(a[at] if at < 4 else 0) / total_on + u[at] / total_on for at in range(6)]
    whole_off = [(b[at] if at < 4 else 0) / total_off + v[at] / total_off for at in range(6)]
    truth = sum(abs(p - q) for p, q in zip(whole_on, whole_off, strict=True)) / 2
    interval = total_variation(off, on)
    mirrored = total_variation(on, off)
    assert interval.lower - 1e-12 <= truth <= interval.upper + 1e-12
    assert math.isclose(interval.lower, mirrored.lower, abs_tol=1e-12)
    assert math.isclose(interval.upper, mirrored.upper, abs_tol=1e-12)
    assert interval.upper - interval.lower <= off.slack + on.slack + 1e-12


@settings(max_examples=200)
@given(a=numbers(4), b=numbers(4), s=st.integers(0, 20), t=st.integers(0, 20))
def test_both_ends_are_attained(a: list[int], b: list[int], s: int, t: int) -> None:
    """Brute force over where the unexplored mass could lie, in units that make both sums equal."""
    total = max(sum(a) + s, sum(b) + t)
    if not total:
        return
    s, t = total - sum(a), total - sum(b)
    off = law([leaf(value, mass / total) for value, mass in enumerate(b) if mass])
    on = law([leaf(value, mass / total) for value, mass in enumerate(a) if mass])
    interval = total_variation(off, on)
    apart = [*zip(a, b, strict=True), (s, 0), (0, t)]
    assert sum(abs(p - q) for p, q in apart) / 2 / total == pytest.approx(interval.upper, abs=1e-12)
    left_s, left_t, level = s, t, []
    for p, q in zip(a, b, strict=True):
        down, up = min(left_t, max(0, p - q)), min(left_s, max(0, q - p))
        left_s, left_t = left_s - up, left_t - down
        level.append((p + up, q + down))
    level.append((left_s, left_t))
    assert sum(abs(p - q) for p, q in level) / 2 / total == pytest.approx(interval.lower, abs=1e-12)


def test_a_complete_law_has_no_slack() -> None:
    off = law([leaf(0, 0.5), leaf(1, 0.5)])
    on = law([leaf(0, 0.25), leaf(0, 0.5), leaf(1, 0.25)])
    assert (off.slack, on.slack) == (0.0, 0.0)
    assert total_variation(off, on).lower == total_variation(off, on).upper == 0.25
    assert on.rows() == [{"outcome": {"value": 0}, "p": 0.75}, {"outcome": {"value": 1}, "p": 0.25}]


def test_told_leaves_count_no_proposals() -> None:
    assert law([leaf(0, 0.5), leaf(1, 0.5, closed=True)]).proposals == 1


def test_the_shortest_failing_path_comes_first() -> None:
    off = law([leaf(0, 0.5), leaf(1, 0.25), leaf(2, 0.25)])
    on = [
        leaf(0, 0.5, (0,)),
        leaf(1, 0.125, (1, 0, 0)),
        leaf(1, 0.1875, (1, 1)),
        leaf(3, 0.1875, (2, 1)),
    ]
    assert [found.choices for found in failing(off, on)] == [(1, 1), (2, 1), (1, 0, 0)]
    assert [found.choices for found in failing(off, on, limit=1)] == [(1, 1)]
    assert failing(law([leaf(0, 1.0)]), [leaf(0, 1.0 - 1e-9)]) == []


def test_what_slack_could_explain_fails_nothing() -> None:
    assert failing(law([leaf(0, 0.5)]), [leaf(0, 0.5), leaf(1, 0.5)]) == []
    assert failing(law([leaf(0, 0.75)]), [leaf(0, 0.5), leaf(1, 0.5)]) != []
