"""The exact channel on a decoder whose law is known: clean never accused, planted faults caught exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from choices_fixture import (
    END,
    FAULTS,
    HORIZON,
    MODEL_FAULTS,
    VOCAB,
    Bench,
    Engine,
    bench,
    distance,
    seeds,
    sequential,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adapters.base import Arm
from harness.choices.explore import Explorer
from harness.choices.law import law
from harness.choices.tree import Chooser, Leaf, Run
from harness.collectors.choices import Done, Request, Restart, collect
from harness.collectors.choices_wire import leaf_json
from prereg.analyse.laws import arm_law, tv_interval
from prereg.collect.leaf import leaf_of
from prereg.model.tree import Tree

MODES = ("lookup", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both arms, walked in this process."""

    off: list[Leaf]
    on: list[Leaf]
    done: Mapping[str, Done]
    tv_lower: float
    tv_upper: float


def pair_of(adapter: Any) -> Pair:
    found: dict[str, list[Leaf]] = {"off": [], "on": []}
    done: dict[str, Done] = {}
    for name, leaves in found.items():
        arm = Arm(id=name, role="test" if name == "on" else "reference", speculation=name == "on")
        for item in collect(adapter, Request(arm=arm)):
            if isinstance(item, Leaf):
                leaves.append(item)
            elif isinstance(item, Restart):
                leaves.clear()
            else:
                done[name] = item
    off, on = (
        Tree(
            leaves=tuple(leaf_of(leaf_json(leaf)) for leaf in found[name]),
            runs=done[name].runs,
            unexplored=done[name].unexplored,
            admission={},
            seconds=0.0,
        )
        for name in ("off", "on")
    )
    lower, upper = tv_interval(arm_law(off), arm_law(on))
    return Pair(off=found["off"], on=found["on"], done=done, tv_lower=lower, tv_upper=upper)


def pair(seed: int, mode: str, **change: object) -> Pair:
    return pair_of(bench(seed, mode, **change))


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(min_value=0, max_value=10**9))
def test_a_clean_engine_is_never_accused(mode: str, seed: int) -> None:
    found = pair(seed, mode)
    expected = sequential(seed)
    assert distance(law(found.off).p, expected) < 1e-12
    assert distance(law(found.on).p, expected) < 1e-12
    assert found.tv_upper < 1e-12
    assert found.done["on"].admission["ok"] and found.done["off"].admission["ok"]
    assert found.done["on"].admission["proposals"] > 0
    assert found.done["on"].admission["restarts"] == []


@pytest.mark.parametrize(
    ("mode", "fault"), [*itertools.product(["lookup"], FAULTS), *itertools.product(["model"], MODEL_FAULTS)]
)
def test_every_planted_fault_is_caught(mode: str, fault: str) -> None:
    for seed in seeds(20):
        found = pair(seed, mode, fault=fault)
        assert found.tv_lower > 1e-6, seed
        # The law is the faulty engine's own, so it is admitted: a departure is no defect of the enumeration.
        assert found.done["on"].admission["ok"], found.done["on"].admission


@pytest.mark.parametrize("mode", MODES)
def test_state_that_leaks_between_requests_is_not_admitted(mode: str) -> None:
    for seed in seeds(5):
        found = pair(seed, mode, leaks=True)
        checks = found.done["on"].admission
        assert not checks["ok"]
        assert not checks["walk"]["ok"] and not checks["replay"]["ok"]
        # That is no reason to think that rows past the mismatch matter.
        assert checks["restarts"] == []


def test_an_engine_that_reads_past_the_mismatch_is_expanded_and_right() -> None:
    for seed in seeds(10):
        found = pair(seed, "lookup", reuses=True)
        checks = found.done["on"].admission
        assert checks["restarts"] == ["refill"] and checks["refill"]["expanded"]
        assert checks["ok"], checks
        assert distance(law(found.on).p, sequential(seed)) < 1e-12


def test_a_fault_that_lies_past_the_mismatch_is_found() -> None:
    for seed in seeds(10):
        found = pair(seed, "lookup", peeks=True)
        assert found.done["on"].admission["restarts"] == ["refill"]
        assert found.tv_lower > 1e-6
        # Every row a choice from the start gives the same law.
        whole = Explorer(program=Engine(seed=seed, mode="lookup", peeks=True), expand=True)
        assert distance(law(list(whole.leaves())).p, law(found.on).p) < 1e-15


def test_randomness_past_the_chooser_is_not_admitted() -> None:
    found = pair_of(bench(1, "lookup", random_state_changed=1))
    assert not found.done["on"].admission["ok"]
    assert found.done["on"].admission["randomness"] == {"unaccounted": 1, "ok": False}


def test_a_told_leaf_that_goes_otherwise_is_run_instead() -> None:
    class Teller(Engine):
        """Tells the outcomes of its last choice's siblings, one of them wrongly if it lies."""

        lies = True

        def run(self, chooser: Chooser) -> Run:
            run = Engine.run(self, chooser)
            tokens = list(run.outcome["tokens"])
            if len(tokens) < HORIZON:
                return run
            told = {
                token: {"tokens": [*tokens[:-1], END if self.lies and token == 1 else token], "finish": None}
                for token in range(VOCAB)
                if token != tokens[-1]
            }
            return replace(run, siblings=told)

    for lies in (True, False):
        Teller.lies = lies
        found = pair_of(Bench(off=Teller(seed=5), on=Engine(seed=5, mode="lookup")))
        checks = found.done["off"].admission
        assert checks["ok"], checks
        assert checks["restarts"] == (["closed"] if lies else []) and checks["closed"]["reopened"] == lies
        assert any(leaf.closed for leaf in found.off) != lies
        assert distance(law(found.off).p, sequential(5)) < 1e-12


def test_weights_sum_to_one_at_every_node() -> None:
    found = pair(3, "model")
    children: dict[tuple[int, ...], dict[int, float]] = {}
    for leaf in found.on:
        assert math.isclose(leaf.weight, math.prod(leaf.p), rel_tol=1e-15)
        for at, (index, p) in enumerate(zip(leaf.choices, leaf.p, strict=True)):
            assert children.setdefault(leaf.choices[:at], {}).setdefault(index, p) == p
    assert all(abs(math.fsum(row.values()) - 1.0) < 1e-12 for row in children.values())
