"""What a probe judges by: the seeds of its draws, the documented rules, and the events over its laws."""

from __future__ import annotations

from prereg.analyse.laws import law_of
from prereg.collect.choices import ARMS
from prereg.collect.probe_draws import Draws
from prereg.draft.family import events_of
from prereg.draft.rules import documented_rules, tiny
from prereg.model.law import Decoded, NoEarlyEnd
from prereg.model.tree import Tree, TreeLeaf
from prereg.stats.membership import Membership


def test_seeds_of_draws_are_each_used_once() -> None:
    wanted = Draws(draws=10, seed_base=100, rows=4)
    off, on = (wanted.seeds(arm) for arm in ARMS)
    assert off == [(100, 4), (101, 4), (102, 2)]
    assert on == [(seed, 1) for seed in range(103, 113)]
    assert wanted.requests == 13


def test_the_end_tokens_of_a_checkpoint_are_asked_of_the_engine() -> None:
    model = {"kind": "checkpoint", "path": "/x", "sha256": "0" * 64}
    features = {"min_new_tokens": 2, "stop_strings": ["cd"]}
    rules = documented_rules(features, 3, [1], model, ends=[7, 9])
    assert [rule.id for rule in rules] == ["horizon", "no-early-end"]
    assert rules[1].rule == NoEarlyEnd(n=2, end=(7, 9))


def test_the_minimum_of_llama_cpp_python_is_a_rule_too() -> None:
    rules = documented_rules({"min_tokens": 3}, 4, [1], tiny("llamacpp", "4", 0.2).model)
    assert [(rule.id, rule.source) for rule in rules[1:]] == [("no-early-end", "min_tokens")]


def test_a_large_vocabulary_has_few_events_and_those_that_matter() -> None:
    def tree(heavy: int) -> Tree:
        p = dict.fromkeys(range(5000), 1e-05) | {heavy: 0.9}
        leaves = [
            TreeLeaf(
                choices=(at,), p=(p[at],), outcome=Decoded(tokens=(at,), finish=None), proposals=0, accepted=0
            )
            for at in p
        ]
        return Tree(leaves=tuple(leaves), runs=1, unexplored=0.0, admission={}, seconds=0.0)

    events = events_of(law_of(tree(3000)), law_of(tree(4000)), 1)
    assert len(events) < 1000
    assert Membership(events).of(Decoded(tokens=(4000,), finish=None)) != Membership(events).of(
        Decoded(tokens=(17,), finish=None)
    )
