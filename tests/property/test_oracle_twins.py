"""The two enumerations of the sequential law agree on any kernel, and are the law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.adapters.base import Outcome, Prefix
from harness.oracle import enumerate as levels
from harness.oracle import naive


class Table:
    """A kernel from a table of weights: rows depend on the whole prefix, and some prefixes end early."""

    def __init__(self, weights: list[list[int]], ends: set[int], horizon: int, merge: bool = False) -> None:
        self.horizon = horizon
        self.weights = weights
        self.ends = ends
        self.merge = merge
        self.lengths: list[set[int]] = []

    def row(self, prefix: Prefix) -> list[float]:
        place = sum((token + 1) * 7**index for index, token in enumerate(prefix)) % len(self.weights)
        row = self.weights[place]
        total = sum(row)
        return [weight / total for weight in row]

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        self.lengths.append({len(prefix) for prefix in prefixes})
        return [self.row(prefix) for prefix in prefixes]

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        return [len(prefix) >= self.horizon or prefix[-1] in self.ends for prefix in prefixes]

    def outcome(self, prefix: Prefix) -> Outcome:
        return {"tokens": list(prefix), "finish": "eos" if prefix[-1] in self.ends else "length"}


@st.composite
def kernels(draw: st.DrawFn) -> Table:
    size = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)
    weights = draw(st.lists(row, min_size=1, max_size=5))
    ends = draw(st.sets(st.integers(0, size - 1), max_size=2))
    return Table(weights, ends, draw(st.integers(1, 4)))


@given(kernels())
def test_the_twins_return_the_same_law(kernel: Table) -> None:
    assert naive.law(kernel) == levels.law(kernel)


@given(kernels())
def test_the_law_is_the_product_along_each_sequence(kernel: Table) -> None:
    expected = {}
    for length in range(1, kernel.horizon + 1):
        for sequence in itertools.product(range(len(kernel.weights[0])), repeat=length):
            inner = [sequence[:at] for at in range(1, length)]
            if any(kernel.stops(inner)) or not kernel.stops([sequence])[0]:
                continue
            mass = math.prod(kernel.row(sequence[:at])[token] for at, token in enumerate(sequence))
            if mass > 0:
                expected[naive.canonical(kernel.outcome(sequence))] = mass
    found = levels.law(kernel)
    keys = [naive.canonical(outcome) for outcome, _ in found]
    assert keys == sorted(expected), "outcomes are missing, repeated, extra or out of order"
    assert all(
        math.isclose(mass, expected[key], rel_tol=1e-12) for key, (_, mass) in zip(keys, found, strict=True)
    )
    assert math.isclose(math.fsum(mass for _, mass in found), 1.0, abs_tol=1e-12)


@given(kernels())
def test_the_slow_twin_asks_for_one_prefix_at_a_time_and_the_fast_one_for_one_length(kernel: Table) -> None:
    levels.law(kernel)
    assert all(len(lengths) == 1 for lengths in kernel.lengths)
    assert len(kernel.lengths) <= kernel.horizon


@pytest.mark.parametrize("twin", [naive, levels])
def test_a_rule_that_never_stops_is_an_error_not_a_shorter_law(twin: object) -> None:
    kernel = Table([[1, 1]], set(), 2)
    kernel.horizon = 3
    kernel.stops = lambda prefixes: [False] * len(prefixes)  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="past the horizon 3"):
        twin.law(kernel)  # type: ignore[attr-defined]


@pytest.mark.parametrize("twin", [naive, levels])
def test_what_underflows_to_nothing_is_left_out(twin: object) -> None:
    kernel = Table([[1, 1]], set(), 3)
    kernel.rows = lambda prefixes: [[1e-200, 1.0]] * len(prefixes)  # type: ignore[method-assign]
    law = twin.law(kernel)  # type: ignore[attr-defined]
    assert [outcome["tokens"] for outcome, _ in law] == [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]


@pytest.mark.parametrize("twin", [naive, levels])
def test_prefixes_that_the_return_map_does_not_tell_apart_are_one_outcome(twin: object) -> None:
    kernel = Table([[1, 1]], set(), 2)
    kernel.outcome = lambda prefix: {"tokens": sorted(prefix), "finish": None}  # type: ignore[method-assign]
    law = twin.law(kernel)  # type: ignore[attr-defined]
    assert [(outcome["tokens"], mass) for outcome, mass in law] == [
        ([0, 0], 0.25),
        ([0, 1], 0.5),
        ([1, 1], 0.25),
    ]
