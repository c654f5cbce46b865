"""The two schedules on tables of weights: with nothing amiss they are sequential decoding (paper, Lemma 1).

A table stands for an engine's kernel; the oracle's slow twin says what its law is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adapters.base import Outcome, Prefix
from harness.adapters.command import CommandAdapter
from harness.mechanisms import hf_assisted, llamacpp_lookup
from harness.mechanisms.base import Call, Hypothesis, Leaf, Raised, first_mismatch, lookup
from harness.oracle import naive
from harness.oracle.naive import Law, ordered

PROMPT = (0, 1, 2, 0, 1)
END = 3


@dataclass(slots=True, kw_only=True)
class Table:
    """A kernel whose rows depend on the whole prefix; token 3 ends it, and so does its horizon."""

    weights: Sequence[Sequence[int]]
    horizon: int

    def row(self, prefix: Prefix, shown: Sequence[Prefix] | None = None) -> list[float]:
        seen = prefix if shown is None else shown[-1]
        place = sum((token + 1) * 7**index for index, token in enumerate(seen)) % len(self.weights)
        total = sum(self.weights[place])
        return [weight / total for weight in self.weights[place]]

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        return [self.row(prefix) for prefix in prefixes]

    def ends(self, prefix: Prefix) -> bool:
        return len(prefix) >= self.horizon or END in prefix[-1:]

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        return [self.ends(prefix) for prefix in prefixes]

    def outcome(self, prefix: Prefix) -> Outcome:
        return {"tokens": list(prefix), "finish": None}

    def end(self, prefix: Prefix, evaluated: Prefix | None = None) -> Outcome | None:
        if not self.ends(prefix):
            return None
        return self.outcome(prefix) | ({} if evaluated is None else {"finish": f"{len(evaluated)}"})


@dataclass(slots=True, kw_only=True)
class Chain:
    """Processors without a state, on a table; those that raise do so when they see `fault`."""

    table: Table
    fault: Prefix | None = None
    made: list[Call] = field(default_factory=list)

    def fork(self) -> Chain:
        return Chain(table=self.table, fault=self.fault, made=list(self.made))

    def allows(self, prefix: Prefix, token: int, first: bool) -> bool:
        self._see("propose", prefix)
        return self.table.row(prefix)[token] > 0.0

    def row(self, prefix: Prefix) -> Sequence[float]:
        self._see("verify", prefix)
        return self.table.row(prefix)

    def calls(self) -> tuple[Call, ...]:
        return tuple(self.made)

    def _see(self, phase: str, prefix: Prefix) -> None:
        self.made.append(Call(phase=phase, tokens=prefix))
        if prefix == self.fault:
            raise Raised("ValueError")


def request(
    table: Table, *, prompt: Prefix = PROMPT, capped: bool = True, logical: bool = False, tokens: int = 3
) -> hf_assisted.Request:
    return hf_assisted.Request(
        prompt=prompt,
        horizon=table.horizon,
        ends=frozenset([END]),
        max_ngram=2,
        max_tokens=tokens,
        capped=capped,
        stops=table.ends,
        outcome=table.outcome,
        logical=logical,
    )


def law_of(leaves: Sequence[Leaf]) -> Law:
    return ordered((leaf.outcome, leaf.p) for leaf in leaves)


def same(a: Law, b: Law) -> bool:
    return [outcome for outcome, _ in a] == [outcome for outcome, _ in b] and all(
        math.isclose(p, q, abs_tol=1e-12) for (_, p), (_, q) in zip(a, b, strict=True)
    )


@st.composite
def tables(draw: st.DrawFn) -> Table:
    row = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)
    return Table(weights=draw(st.lists(row, min_size=1, max_size=5)), horizon=draw(st.integers(1, 4)))


@settings(max_examples=60, deadline=None)
@given(tables(), st.booleans(), st.integers(1, 4))
def test_assisted_decoding_without_a_state_is_sequential(table: Table, logical: bool, tokens: int) -> None:
    leaves = list(hf_assisted.leaves(request(table, logical=logical, tokens=tokens), Chain(table=table)))
    assert same(law_of(leaves), naive.law(table))


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(1, 4))
def test_the_other_engine_s_loop_with_logical_reads_is_sequential(table: Table, tokens: int) -> None:
    leaves = list(llamacpp_lookup.walk(table, PROMPT, 2, tokens, 64, llamacpp_lookup.Reads()))
    assert same(law_of(leaves), naive.law(table))


FLAT = Table(weights=[[1, 1, 1, 1]], horizon=3)


def test_a_processor_in_the_buffer_s_hands_sees_what_was_not_drawn() -> None:
    leaves = llamacpp_lookup.walk(FLAT, PROMPT, 2, 2, 64, llamacpp_lookup.Reads(processors=True))
    seen = {tuple(leaf.outcome["tokens"]): [call.tokens for call in leaf.calls] for leaf in leaves}
    # The prompt is evaluated by itself; after it and 2, "0 1" is what followed "1 2" before.
    assert seen[2, 1, 3] == [(), (2, 0, 1), (2, 1, 2, 0)]
    assert seen[2, 0, 3] == [(), (2, 0, 1), (2, 0, 1)]


def test_the_last_check_sees_the_whole_buffer() -> None:
    leaves = llamacpp_lookup.walk(FLAT, PROMPT, 2, 2, 64, llamacpp_lookup.Reads(postcheck=True))
    sizes = {tuple(leaf.outcome["tokens"]): leaf.outcome["finish"] for leaf in leaves}
    assert sizes[3,] == "0", "the prompt alone was evaluated"
    assert sizes[2, 3] == "3", "the block was 2 and the proposed 0 1, neither of which was drawn"


def test_a_block_that_is_not_cut_at_the_horizon_overshoots() -> None:
    table = Table(weights=[[1, 1, 1, 0]], horizon=3)
    kept = law_of(list(hf_assisted.leaves(request(table), Chain(table=table))))
    assert same(kept, naive.law(table))
    over = law_of(list(hf_assisted.leaves(request(table, capped=False), Chain(table=table))))
    long = [tuple(outcome["tokens"]) for outcome, _ in over if len(outcome["tokens"]) > 3]
    # After 0 the drafter proposes 1 2 0 and after 1 it proposes 2 0 1, one more than there is room for; the
    # last is left out, so that two that are met bring any third.
    assert long == [(0, 1, 2, 0), (0, 1, 2, 1), (0, 1, 2, 2), (1, 2, 0, 0), (1, 2, 0, 1), (1, 2, 0, 2)]


def test_a_proposal_is_cut_before_an_end_token() -> None:
    leaves = list(hf_assisted.leaves(request(FLAT, prompt=(0, 1, END, 2, 0)), Chain(table=FLAT)))
    assert same(law_of(leaves), naive.law(FLAT))


def test_the_calls_of_a_round_are_the_drafter_s_and_then_the_verifier_s() -> None:
    table = Table(weights=[[0, 1, 1, 0]], horizon=3)
    leaves = list(hf_assisted.leaves(request(table, tokens=2), Chain(table=table)))
    first = next(leaf for leaf in leaves if leaf.outcome["tokens"][0] == 1)
    # "2 0" followed "0 1", and 0 is forbidden: the drafter learns that from its second question.
    assert [(call.phase, call.tokens) for call in first.calls[:4]] == [
        ("propose", ()),
        ("propose", (2,)),
        ("verify", ()),
        ("verify", (2,)),
    ]


@pytest.mark.parametrize(("fault", "mass"), [((), 1.0), ((1,), 0.25)])
def test_a_processor_that_raises_ends_the_request_with_a_crash(fault: Prefix, mass: float) -> None:
    law = law_of(list(hf_assisted.leaves(request(FLAT), Chain(table=FLAT, fault=fault))))
    assert ({"crash": "ValueError"}, mass) in law


def test_lookup_prefers_the_longest_match_and_then_the_leftmost() -> None:
    assert list(lookup((0, 1, 2, 0, 1, 3, 0, 1), 2, 2, 99)) == [(2, 0), (3, 0), (2, 0), (3, 0)]
    assert list(lookup((0, 1, 2), 2, 2, 99)) == [], "the last tokens themselves are no match"
    assert list(lookup((1, 1), 2, 3, 99)) == [(1,)]
    assert list(lookup((0, 1, 2, 0), 1, 3, 2)) == [(1,)], "nothing from the limit on"


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any), min_size=1, max_size=4))
def test_what_a_block_commits_has_probability_one(weights: list[list[int]]) -> None:
    rows = [[weight / sum(row) for weight in row] for row in weights]
    candidate = [1] * (len(rows) - 1)
    found = list(first_mismatch(candidate, rows))
    assert math.isclose(math.fsum(p for _, p in found), 1.0, abs_tol=1e-12)
    assert len({added for added, _ in found}) == len(found)


def test_a_law_adds_up_the_ways_to_one_outcome() -> None:
    leaves = [Leaf(outcome={"tokens": [], "finish": None}, p=p, calls=()) for p in (0.1, 0.2, 0.7)]
    hypothesis = Hypothesis(
        name="x", adapter="command", statement="x", leaves=lambda adapter, logical: iter(leaves)
    )
    assert hypothesis.law(CommandAdapter()) == [({"tokens": [], "finish": None}, 1.0)]
