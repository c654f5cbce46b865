"""Processor time from two trees of choices in memory to the decision, against the page followed word by word.

    python bench/exact.py [--vocabulary 10] [--horizon 5] [--naive-leaves 1000]

The naive way compares every leaf with every other and asks every event of every leaf. It is timed on the
first `--naive-leaves` leaves of each arm and scaled up: comparisons by the square of their number, events in
proportion to it.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from bench.synthetic import SEAL, enumerated_family
from bench.trees import exact_study, grown
from prereg.analyse.decide import decide
from prereg.analyse.laws import law_of
from prereg.analyse.shape import shape_fault
from prereg.model.law import MaxTokens, Predicate
from prereg.model.tree import TreeLeaf
from prereg.stats.membership import contains


def compare_all(leaves: tuple[TreeLeaf, ...]) -> bool:
    """Whether no leaf's choices begin with another's and common beginnings agree: every pair is looked at."""
    for i, one in enumerate(leaves):
        for two in leaves[i + 1 :]:
            shared = 0
            while shared < min(len(one.choices), len(two.choices)):
                if one.choices[shared] != two.choices[shared]:
                    break
                shared += 1
            if shared in (len(one.choices), len(two.choices)) or one.p[:shared] != two.p[:shared]:
                return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=5)
    parser.add_argument("--naive-leaves", type=int, default=1000)
    given = parser.parse_args()

    rule = Predicate(id="length", statement="at most", source="-", rule=MaxTokens(n=given.horizon))
    family = replace(enumerated_family(7, 3, seed=1), reference=None)
    plan = exact_study({"c": family}, predicates=[rule])
    trees = {
        "walk.c.off": grown(given.vocabulary, given.horizon, seed=1),
        "walk.c.on": grown(given.vocabulary, given.horizon, seed=1, tilt=0.1, drafter=True),
    }
    sizes = {name: len(tree.leaves) for name, tree in trees.items()}
    print(f"{sizes['walk.c.off']:,} leaves off, {sizes['walk.c.on']:,} on, {len(family.events)} events")

    start = time.process_time()
    exact = decide(plan, SEAL, {}, set(), trees).exact
    fast = time.process_time() - start
    assert exact is not None
    (decision,) = exact.configurations
    print(f"decide {fast:.2f} s: {decision.verdict}, total variation {decision.tv_upper:.4f}")
    for name, tree in trees.items():
        start = time.process_time()
        assert shape_fault(tree.leaves, 0.0) is None
        shaped = time.process_time() - start
        law_of(tree)
        print(f"  {name}: tree {shaped:.2f} s, law {time.process_time() - start - shaped:.2f} s")

    pairs = asked = 0.0
    for tree in trees.values():
        part = tree.leaves[: given.naive_leaves]
        scale = len(tree.leaves) / len(part)
        start = time.process_time()
        assert compare_all(part)
        compared = time.process_time()
        for event in family.events:
            sum(contains(event, one.outcome, family.events, [rule]) for one in part)
        pairs += (compared - start) * scale**2
        asked += (time.process_time() - compared) * scale
    naive = pairs + asked
    print(f"naive, scaled: pairs {pairs:.0f} s + events {asked:.0f} s, {naive / fast:,.0f} times as long")


if __name__ == "__main__":
    main()
