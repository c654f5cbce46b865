"""The interval of the total variation holds the truth whatever is unexplored, and no narrower one would."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prereg.analyse.laws import ArmLaw, arm_law, tv_interval
from prereg.model.law import Decoded
from prereg.model.tree import Tree, TreeLeaf


def arm(masses: Sequence[tuple[int, float]]) -> ArmLaw:
    leaves = tuple(
        TreeLeaf(
            choices=(value,),
            p=(mass,),
            outcome=Decoded(tokens=(value,), finish=None),
            proposals=0,
            accepted=0,
        )
        for value, mass in masses
    )
    return arm_law(Tree(leaves=leaves, runs=0, unexplored=0.0, admission={}, seconds=0.0))


def numbers(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(min_value=0, max_value=20), min_size=size, max_size=size)


@settings(max_examples=200)
@given(a=numbers(4), b=numbers(4), u=numbers(6), v=numbers(6))
def test_the_interval_holds_the_truth(a: list[int], b: list[int], u: list[int], v: list[int]) -> None:
    """u and v, the unexplored parts, may fall on known outcomes (0 to 3) and on new ones (4, 5)."""
    total_on, total_off = sum(a) + sum(u), sum(b) + sum(v)
    if not total_on or not total_off:
        return
    off = arm([(value, mass / total_off) for value, mass in enumerate(b) if mass])
    on = arm([(value, mass / total_on) for value, mass in enumerate(a) if mass])
    whole_on = [(a[at] if at < 4 else 0) / total_on + u[at] / total_on for at in range(6)]
    whole_off = [(b[at] if at < 4 else 0) / total_off + v[at] / total_off for at in range(6)]
    truth = sum(abs(p - q) for p, q in zip(whole_on, whole_off, strict=True)) / 2
    lower, upper = tv_interval(off, on)
    mirrored = tv_interval(on, off)
    assert lower - 1e-12 <= truth <= upper + 1e-12
    assert math.isclose(lower, mirrored[0], abs_tol=1e-12)
    assert math.isclose(upper, mirrored[1], abs_tol=1e-12)
    assert upper - lower <= off.slack + on.slack + 1e-12


@settings(max_examples=200)
@given(a=numbers(4), b=numbers(4), s=st.integers(0, 20), t=st.integers(0, 20))
def test_both_ends_are_attained(a: list[int], b: list[int], s: int, t: int) -> None:
    """Brute force over where the unexplored mass could lie, in units that make both sums equal."""
    total = max(sum(a) + s, sum(b) + t)
    if not total:
        return
    s, t = total - sum(a), total - sum(b)
    off = arm([(value, mass / total) for value, mass in enumerate(b) if mass])
    on = arm([(value, mass / total) for value, mass in enumerate(a) if mass])
    lower, upper = tv_interval(off, on)
    apart = [*zip(a, b, strict=True), (s, 0), (0, t)]
    assert sum(abs(p - q) for p, q in apart) / 2 / total == pytest.approx(upper, abs=1e-12)
    left_s, left_t, level = s, t, []
    for p, q in zip(a, b, strict=True):
        down, up = min(left_t, max(0, p - q)), min(left_s, max(0, q - p))
        left_s, left_t = left_s - up, left_t - down
        level.append((p + up, q + down))
    level.append((left_s, left_t))
    assert sum(abs(p - q) for p, q in level) / 2 / total == pytest.approx(lower, abs=1e-12)
