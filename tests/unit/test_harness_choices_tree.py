"""The explorer on programs that are only trees: every path once, slack exact, parts and pauses add up."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choices.explore import BEST_FIRST, FULL, MODES, Budget, Explorer
from harness.choices.tree import Choices, Chooser, Diverged, Leaf, Run, Subtree, normalised

COUNTERS = {"proposals": 0, "verifications": 0, "accepted": 0}


@dataclass(slots=True, kw_only=True)
class Tree:
    """A random tree: the row at each node follows from the choices before it."""

    seed: int
    depth: int = 3
    tells: bool = False
    lies: bool = False
    ran: list[Choices] = field(default_factory=list)

    def row(self, node: Choices) -> Any:
        source = random.Random(f"{self.seed} {node}")
        row = [source.random() * source.choice([0, 1, 1]) for _ in range(source.randint(1, 4))]
        return normalised(row) if any(row) else normalised([1.0])

    def run(self, chooser: Chooser) -> Run:
        node: Choices = ()
        while len(node) < self.depth and not (
            node and random.Random(f"stop {self.seed} {node}").random() < 0.2
        ):
            node = (*node, chooser.choose(self.row(node), "token"))
        self.ran.append(node)
        siblings = {}
        if self.tells and len(node) == self.depth:
            shift = 1 if self.lies else 0
            siblings = {at: {"value": repr((*node[:-1], at + shift))} for at in range(4)}
        return Run(outcome={"value": repr(node)}, counters=COUNTERS, digest="", siblings=siblings)


def every(seed: int, node: Choices = (), mass: float = 1.0) -> dict[Choices, float]:
    """All leaves of a tree, by plain recursion."""
    tree = Tree(seed=seed)
    stops = node and random.Random(f"stop {seed} {node}").random() < 0.2
    if len(node) == tree.depth or stops:
        return {node: mass}
    found: dict[Choices, float] = {}
    for index, p in enumerate(tree.row(node).tolist()):
        if p > 0.0:
            found |= every(seed, (*node, index), mass * p)
    return found


def masses(leaves: Iterable[Leaf]) -> dict[Choices, float]:
    found: dict[Choices, float] = {}
    for leaf in leaves:
        assert leaf.choices not in found, "a leaf twice"
        found[leaf.choices] = leaf.weight
        assert leaf.outcome == {"value": repr(leaf.choices)}
    return found


SEEDS = st.integers(min_value=0, max_value=10**9)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, mode=st.sampled_from(MODES), tells=st.booleans())
def test_every_path_once(seed: int, mode: str, tells: bool) -> None:
    tree = Tree(seed=seed, tells=tells)
    explorer = Explorer(program=tree, mode=mode, close=tells)
    found = masses(explorer.leaves())
    assert found == pytest.approx(every(seed), abs=1e-15)
    assert found.keys() == every(seed).keys()
    assert explorer.unexplored() == 0.0 and explorer.frontier() == [] and explorer.differences == []
    assert explorer.runs == len(tree.ran) and (tells or explorer.runs == len(found))
    assert math.isclose(math.fsum(found.values()), 1.0, abs_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS, mode=st.sampled_from(MODES), runs=st.integers(min_value=0, max_value=12), tells=st.booleans()
)
def test_a_budget_leaves_the_rest_as_slack_to_go_on_from(
    seed: int, mode: str, runs: int, tells: bool
) -> None:
    first = Explorer(program=Tree(seed=seed, tells=tells), mode=mode, budget=Budget(runs=runs), close=tells)
    done = list(first.leaves())
    assert first.runs <= runs
    explored = math.fsum(leaf.weight for leaf in done)
    assert abs(explored + first.unexplored() - 1.0) < 1e-12
    assert abs(math.fsum(subtree.weight for subtree in first.frontier()) - first.unexplored()) < 1e-15
    rest = Explorer(program=Tree(seed=seed), roots=first.frontier())
    assert masses([*done, *rest.leaves()]) == pytest.approx(every(seed), abs=1e-12)


def test_best_first_takes_the_heaviest_paths() -> None:
    for seed in range(20):
        heavy = Explorer(program=Tree(seed=seed), mode=BEST_FIRST, budget=Budget(runs=4))
        plain = Explorer(program=Tree(seed=seed), mode=FULL, budget=Budget(runs=4))
        assert (
            sum(leaf.weight for leaf in heavy.leaves()) >= sum(leaf.weight for leaf in plain.leaves()) - 1e-12
        )
    explorer = Explorer(program=Tree(seed=1), mode=BEST_FIRST, budget=Budget(mass=0.3))
    list(explorer.leaves())
    assert 0.0 < explorer.unexplored() <= 0.3


def test_what_weighs_little_is_not_told() -> None:
    told, left = 0, 0
    for seed in range(30):
        tree = Tree(seed=seed, tells=True)
        explorer = Explorer(
            program=tree, mode=BEST_FIRST, close=True, close_floor=0.03, budget=Budget(runs=2)
        )
        leaves = list(explorer.leaves())
        assert all(leaf.weight >= 0.03 for leaf in leaves if leaf.closed)
        assert abs(math.fsum(leaf.weight for leaf in leaves) + explorer.unexplored() - 1.0) < 1e-12
        told += sum(leaf.closed for leaf in leaves)
        # Siblings of a told leaf that are left: the frontier must not name the told one again.
        parents = {leaf.choices[:-1] for leaf in leaves if leaf.closed}
        left += sum(subtree.choices in parents for subtree in explorer.frontier())
        rest = Explorer(program=Tree(seed=seed), roots=explorer.frontier())
        assert masses([*leaves, *rest.leaves()]) == pytest.approx(every(seed), abs=1e-12)
    assert told and left


def test_seconds_are_a_budget() -> None:
    explorer = Explorer(program=Tree(seed=2), budget=Budget(seconds=0.0))
    assert list(explorer.leaves()) == []
    assert explorer.unexplored() == 1.0 and explorer.frontier() == [Subtree(choices=())]


def test_a_program_that_remembers_is_noticed() -> None:
    class Remembers:
        """Its second row follows from the number of runs."""

        runs = 0

        def run(self, chooser: Chooser) -> Run:
            self.runs += 1
            chooser.choose(np.array([0.5, 0.5]), "token")
            last = chooser.choose(np.array([0.5, 0.5]) if self.runs < 2 else np.array([0.25, 0.75]), "token")
            return Run(outcome={"value": last}, counters=COUNTERS, digest="")

    explorer = Explorer(program=Remembers())
    list(explorer.leaves())
    assert explorer.differences and explorer.differences[0].size == 0.25


def test_an_earlier_row_that_changes_is_noticed() -> None:
    class Remembers:
        """Its first row follows from the number of runs; the second, where the paths part, does not."""

        runs = 0

        def run(self, chooser: Chooser) -> Run:
            self.runs += 1
            chooser.choose(np.array([1.0, 0.0]) if self.runs < 2 else np.array([0.75, 0.25]), "token")
            last = chooser.choose(np.array([0.5, 0.5]), "token")
            return Run(outcome={"value": last}, counters=COUNTERS, digest="")

    explorer = Explorer(program=Remembers())
    assert len(list(explorer.leaves())) == 2
    assert [(found.choices, found.size) for found in explorer.differences] == [((0, 1), 0.25)]


def test_a_prefix_that_has_become_impossible_is_noticed() -> None:
    class Shrinks:
        runs = 0

        def run(self, chooser: Chooser) -> Run:
            self.runs += 1
            taken = chooser.choose(np.array([0.5, 0.5]) if self.runs < 2 else np.array([1.0, 0.0]), "token")
            return Run(outcome={"value": taken}, counters=COUNTERS, digest="")

    explorer = Explorer(program=Shrinks())
    assert len(list(explorer.leaves())) == 1
    assert [difference.size for difference in explorer.differences] == [math.inf]


def test_a_prefix_longer_than_the_path_is_noticed() -> None:
    explorer = Explorer(program=Tree(seed=1), roots=[Subtree(choices=(0,) * 9)])
    assert list(explorer.leaves()) == []
    assert "ended before" in explorer.differences[0].what


def test_no_engine_can_catch_a_divergence() -> None:
    chooser = Chooser(prefix=(1,))
    with pytest.raises(Diverged):
        try:
            chooser.choose(np.array([1.0, 0.0]), "token")
        except Exception:  # noqa: BLE001
            pytest.fail("caught as if it were the engine's own")


@pytest.mark.parametrize("row", [[], [0.0, 0.0], [-0.1, 1.1], [math.nan, 1.0], [math.inf, 1.0]])
def test_what_is_no_law(row: list[float]) -> None:
    assert normalised(row) is None


def test_float32_rows_sum_to_one() -> None:
    row = normalised(np.array([0.1, 0.2, 0.7], dtype=np.float32))
    assert row is not None and math.fsum(row.tolist()) == pytest.approx(1.0, abs=1e-15)


def test_a_block_ends_its_choices_at_the_first_mismatch() -> None:
    half = np.array([0.5, 0.5])
    chooser = Chooser(prefix=(0, 1))
    assert chooser.block([half, half, half], [0, 0], "token") == [0, 1, 0]
    assert (len(chooser.points), chooser.filled) == (2, 1)
    fills = {
        variant: Chooser(prefix=(1,), variant=variant).block([half, half, half], [0, 0], "token")[1:]
        for variant in range(3)
    }
    assert fills == {0: [1, 0], 1: [0, 1], 2: [1, 1]}
    whole = Chooser(prefix=(1, 0, 1), expand=True)
    assert whole.block([half, half, half], [0, 0], "token") == [1, 0, 1]
    assert len(whole.points) == 3


def test_acceptance_stops_at_the_first_rejection() -> None:
    chooser = Chooser(prefix=(0, 1))
    assert chooser.accepts([0.5, 0.25, 0.5], "accept")[:2] == [True, False]
    assert [point.row.tolist() for point in chooser.points] == [[0.5, 0.5], [0.25, 0.75]]
