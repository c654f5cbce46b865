"""The law of the first tokens, and mass left below a floor: sound for right and for faulty engines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from window_fixture import HORIZON, VOCAB, Adapter, Decoder, Kernel

from harness.adapters.base import Arm, Outcome
from harness.choices import explore
from harness.choices.admission import against, doubtful
from harness.choices.explore import BEST_FIRST, FULL, Budget, Explorer
from harness.choices.law import law
from harness.choices.tree import Choices, Chooser, Leaf, Run, Subtree, normalised
from harness.choices.window import WindowKernel, cut, windowed
from harness.collectors import choices as collector
from harness.collectors.choices import Done, Request, collect
from harness.collectors.choices_wire import leaf_json, shortened
from harness.oracle import enumerate as oracle
from harness.oracle.naive import canonical
from prereg.collect import split_checks


def walk(
    decoder: Decoder, first: int | None, other_ends: tuple[int, ...] = (), **fields: Any
) -> tuple[list[Leaf], Done]:
    adapter: Any = Adapter(decoder=decoder, other_ends=other_ends)
    arm = Arm(id="off", role="reference", speculation=False)
    leaves: list[Leaf] = []
    for item in collect(adapter, Request(arm=arm, first=first, **fields)):
        if isinstance(item, Leaf):
            leaves.append(item)
        elif isinstance(item, Done):
            return leaves, item
        else:
            leaves.clear()
    raise AssertionError("no end")


def marginal(leaves: list[Leaf], size: int) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for leaf in leaves:
        found.setdefault(canonical(cut(leaf.outcome, size)), []).append(leaf.weight)
    return {key: math.fsum(weights) for key, weights in found.items()}


def close(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return a.keys() == b.keys() and all(abs(a[key] - b[key]) < 1e-12 for key in a)


@pytest.mark.parametrize("mode", [FULL, BEST_FIRST])
@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("reaches_back", [False, True])
def test_the_law_of_the_first_tokens_is_the_marginal(mode: str, first: int, reaches_back: bool) -> None:
    for seed in range(8):
        whole, _ = walk(Decoder(seed=seed, reaches_back=reaches_back), None)
        leaves, done = walk(Decoder(seed=seed, reaches_back=reaches_back), first, mode=mode)
        assert close(law(leaves).p, marginal(whole, first))
        if reaches_back and first == 1:
            assert done.admission["restarts"][-1] == "refill"
        assert done.admission["weights"]["ok"] and done.admission["refill"]["ok"]
        if not reaches_back:
            assert done.admission["ok"], done.admission
            assert done.admission["oracle"]["outcomes"] == len(law(leaves).p)


def test_the_first_token_takes_one_run() -> None:
    leaves, done = walk(Decoder(seed=1), 1)
    assert (done.runs, len(leaves), done.unexplored) == (1, VOCAB, 0.0)
    assert sum(leaf.closed for leaf in leaves) == VOCAB - 1


def test_a_told_sibling_that_goes_otherwise_is_run() -> None:
    leaves, done = walk(Decoder(seed=1, ends_at=1), 1, mode=BEST_FIRST)
    assert done.admission["restarts"] == ["closed"] and done.admission["closed"]["reopened"]
    assert law(leaves).p[canonical({"tokens": [], "finish": "other"})] > 0


@pytest.mark.parametrize("mode", [FULL, BEST_FIRST])
def test_an_end_token_that_is_told_wrong_is_run_however_few_leaves_are(mode: str) -> None:
    for seed in range(8):
        decoder = Decoder(seed=seed, ends_at=2)
        leaves, done = walk(decoder, 1, mode=mode, sample=2, other_ends=(2,))
        assert any(leaf.choices == (2,) and not leaf.outcome["tokens"] for leaf in leaves)
        assert not any(leaf.closed for leaf in leaves) or leaves[0].choices == (2,)
        assert (done.admission["restarts"] == ["closed"]) != (leaves[0].choices == (2,))


def told(last: int, weight: float, tokens: list[int], finish: str | None, closed: bool = True) -> Leaf:
    return Leaf(
        choices=(0, last),
        kinds=("token", "token"),
        p=(1.0, weight),
        weight=weight,
        outcome={"tokens": tokens, "finish": finish},
        counters={},
        digest="",
        closed=closed,
        filled=0,
    )


def test_told_leaves_that_end_otherwise_than_their_siblings_are_in_doubt() -> None:
    usual = [told(at, 0.01, [0, at], "length") for at in range(2, 40)]
    odd = [told(40, 0.01, [0, 40], "eos"), told(41, 0.02, [0], "stop"), told(42, 0.03, [0, 42], None)]
    ran = told(1, 0.5, [0], "other", closed=False)
    leaves = [ran, *usual, *odd]
    assert [leaf.choices[-1] for leaf in doubtful(leaves, 8)] == [42, 41, 40]
    assert [leaf.choices[-1] for leaf in doubtful(leaves, 8, ends=(7,))] == [42, 41, 7, 40]
    assert len(doubtful(leaves, 2, ends=range(40))) == 2
    assert doubtful([ran, *usual], 8) == []
    # Of one sibling of each kind neither is the usual one.
    assert doubtful([ran, odd[0]], 8) == [odd[0]]
    assert doubtful([told(1, 0.5, [0, 1], "length", closed=False), odd[0]], 8) == [odd[0]]


@pytest.mark.parametrize("first", [1, 2])
def test_leaves_in_doubt_are_the_same_of_a_walk_in_parts(first: int) -> None:
    seen = 0
    for seed in range(8):
        leaves, _ = walk(Decoder(seed=seed), first)
        for ends in ((), (0,), (0, 3)):
            expected = [leaf_json(leaf) for leaf in doubtful(leaves, 3, ends)]
            assert split_checks.doubtful([leaf_json(leaf) for leaf in leaves], 3, ends) == expected
            seen += len(expected)
    assert seen > 8


CUTS: dict[str, tuple[Outcome, Outcome]] = {
    "a crash": ({"crash": "ValueError"}, {"crash": "ValueError"}),
    "shorter": ({"tokens": [1], "finish": "other"}, {"tokens": [1], "finish": "other"}),
    "ended there": ({"tokens": [1, 3], "finish": "eos"}, {"tokens": [1, 3], "finish": "eos"}),
    "stopped there": ({"tokens": [1, 2], "finish": "stop"}, {"tokens": [1, 2], "finish": "stop"}),
    "at the horizon": ({"tokens": [1, 2], "finish": "length"}, {"tokens": [1, 2], "finish": None}),
    "longer": ({"tokens": [1, 3, 2], "finish": "length"}, {"tokens": [1, 3], "finish": None}),
}


@pytest.mark.parametrize("name", CUTS)
def test_what_a_window_shows(name: str) -> None:
    whole, seen = CUTS[name]
    assert cut(whole, 2) == seen


def test_the_oracle_sees_through_the_same_window() -> None:
    decoder = Decoder(seed=3)
    seen = oracle.law(WindowKernel(kernel=Kernel(decoder=decoder), horizon=2))
    leaves, _ = walk(decoder, 2)
    assert close({canonical(o): p for o, p in seen}, law(leaves).p)
    assert windowed(Adapter(decoder=decoder), 9).kernel().horizon == HORIZON  # type: ignore[arg-type]


def test_the_oracle_of_a_bounded_walk_allows_for_what_is_unexplored() -> None:
    for seed in range(8):
        for runs in (1, 5, 20):
            bounded: dict[str, Any] = {"mode": BEST_FIRST, "budget": Budget(runs=runs)}
            leaves, done = walk(Decoder(seed=seed), None, **bounded)
            assert 0.0 < done.unexplored == pytest.approx(law(leaves).slack)
            assert done.admission["oracle"]["ok"], done.admission
        # All but some paths of the other law: what is too much, and what is too little for the slack, shows.
        _, done = walk(Decoder(seed=seed, reaches_back=True), None, mode=BEST_FIRST, budget=Budget(mass=0.01))
        assert done.unexplored > 0.0 and not done.admission["ok"]
        assert done.admission["oracle"]["largest"] > 0.01


def test_a_missing_mass_within_the_slack_is_no_difference() -> None:
    part, lost = (
        Leaf(
            choices=(at,),
            kinds=("token",),
            p=(p,),
            weight=p,
            outcome={"value": str(at)},
            counters={},
            digest="",
            closed=False,
            filled=0,
        )
        for at, p in enumerate((0.75, 0.125))
    )
    reference = [({"value": "0"}, 0.75), ({"value": "1"}, 0.25)]
    assert against([part], reference) == {"outcomes": 2, "largest": 0.0, "ok": True}
    assert against([part, lost], reference)["ok"]
    assert against([part], [({"value": "0"}, 0.5), ({"value": "1"}, 0.5)])["largest"] == 0.25
    missing = against([lost], [({"value": "1"}, 0.0625), ({"value": "0"}, 0.9375)])
    assert missing["largest"] == 0.0625 and not missing["ok"]


def test_a_tree_too_large_for_its_oracle_is_walked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(runs=5)
    prefixes = 1 + (VOCAB - 1) + (VOCAB - 1) ** 2
    for most, asked in ((prefixes, True), (prefixes - 1, False)):
        monkeypatch.setattr(collector, "ORACLE_ROWS", most)
        _, done = walk(Decoder(seed=1), None, mode=BEST_FIRST, budget=budget, sample=1)
        assert (done.admission["oracle"] is not None) == asked and done.admission["ok"]
        _, whole = walk(Decoder(seed=1), None, sample=1)
        assert whole.admission["oracle"]["ok"]


@dataclass(slots=True, kw_only=True)
class Wide:
    """Two choices of a hundred siblings each, of very different weights."""

    width: int = 100
    ran: list[Choices] = field(default_factory=list)

    def run(self, chooser: Chooser) -> Run:
        row = normalised([0.7**at for at in range(self.width)])
        assert row is not None
        for _ in range(2):
            chooser.choose(row, "token")
        path = tuple(point.taken for point in chooser.points)
        self.ran.append(path)
        counters = {"proposals": 0, "verifications": 0, "accepted": 0}
        told = {at: {"value": str((path[0], at))} for at in range(self.width) if at != path[1]}
        return Run(outcome={"value": str(path)}, counters=counters, digest="", siblings=told)


@pytest.mark.parametrize("close_last", [False, True])
@pytest.mark.parametrize("mode", [FULL, BEST_FIRST])
def test_what_is_below_the_floor_is_slack_and_no_more(mode: str, close_last: bool) -> None:
    floor = 1e-3
    explorer = Explorer(program=Wide(), mode=mode, close=close_last, close_floor=floor)
    leaves = list(explorer.leaves())
    mass = math.fsum(leaf.weight for leaf in leaves)
    assert mass + explorer.unexplored() == pytest.approx(1.0, abs=1e-12)
    assert all(leaf.weight >= floor or not leaf.closed for leaf in leaves)
    assert explorer.unexplored() > 0.0
    assert len(explorer.frontier()) < 40
    # What was left is all that is left: walked to its end, it completes the law without doing anything twice.
    rest = Explorer(program=Wide(), mode=mode, roots=explorer.frontier(), close=True)
    more = list(rest.leaves())
    paths = [leaf.choices for leaf in (*leaves, *more)]
    assert len(paths) == len(set(paths)) == 100 * 100
    assert math.fsum(leaf.weight for leaf in (*leaves, *more)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("runs", [1, 4, 30])
def test_a_pause_loses_nothing_below_the_floor(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "MAX_EXCLUDED", 0)
    budget = Budget(runs=runs)
    begun = Explorer(program=Wide(), mode=BEST_FIRST, close_floor=1e-2, budget=budget)
    leaves = list(begun.leaves())
    rest = Explorer(program=Wide(), roots=begun.frontier(), close=True)
    paths = [leaf.choices for leaf in (*leaves, *rest.leaves())]
    assert len(paths) == len(set(paths)) == 100 * 100


def test_a_mass_budget_stops_as_soon_as_it_is_met() -> None:
    explorer = Explorer(
        program=Wide(), mode=BEST_FIRST, close=True, close_floor=1e-6, budget=Budget(mass=0.05)
    )
    list(explorer.leaves())
    assert explorer.unexplored() <= 0.05
    fewer = Explorer(
        program=Wide(),
        mode=BEST_FIRST,
        close=True,
        close_floor=1e-6,
        budget=Budget(runs=explorer.runs - 1),
    )
    list(fewer.leaves())
    assert fewer.unexplored() > 0.05


def test_the_floor_alone_may_leave_more_than_the_budget() -> None:
    explorer = Explorer(
        program=Wide(), mode=BEST_FIRST, close=True, close_floor=0.01, budget=Budget(mass=0.05)
    )
    list(explorer.leaves())
    assert explorer.unexplored() > 0.05
    assert all(isinstance(part, Subtree) for part in explorer.frontier())


def test_long_rows_are_cut_to_the_tokens_that_matter() -> None:
    used, expected = [0.0] * 100, [0.0] * 100
    used[7], used[90], expected[3], expected[90] = 0.6, 0.4, 0.7, 0.3
    shown = shortened({"what": "row", "used": used, "expected": expected})
    assert shown["tokens"][:3] == [3, 7, 90] and len(shown["tokens"]) <= 16
    assert shown["used"][:3] == [0.0, 0.6, 0.4] and shown["expected"][:3] == [0.7, 0.0, 0.3]
    short = shortened({"what": "row", "used": [0.5, 0.5], "expected": [1.0, 0.0]})
    assert short["tokens"] == [0, 1]
    assert shortened({"what": "stop"}) == {"what": "stop"}
