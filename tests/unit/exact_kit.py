"""Coins as trees of choices, and the decisions on them, for the tests of the exact stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.synthetic import SEAL, tally_of
from bench.trees import GOOD, exact_study, leaf, unit_tree
from prereg.analyse.decide import decide
from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.model import law
from prereg.model.exact import ExactDecision, ExactDecisions
from prereg.model.law import Crashed, Decoded, Family, Mass, Outcome, Predicate
from prereg.model.tree import PathCheck, TreeAdmission, UnitTree
from prereg.model.verdict import Decisions

HEADS, TAILS = (Decoded(tokens=(i,), finish="length") for i in range(2))
EDGE = Decoded(tokens=(1, 1), finish="length")
CRASH = Crashed(crash="KeyError")
EVENTS: tuple[law.Event, ...] = (
    law.OutcomeEvent(id="heads", outcome=HEADS),
    law.OutcomeEvent(id="tails", outcome=TAILS),
    law.OtherEvent(id="other"),
    law.LongerEvent(id="longer", than=1),
    law.CrashEvent(id="crash"),
)
SHORT = Predicate(id="short", statement="one token", source="-", rule=law.MaxTokens(n=1))
ONLY = Predicate(id="only", statement="tokens 0 and 1", source="-", rule=law.AllowedTokens(tokens=(0,)))


def coin(*parts: tuple[float, Outcome], proposals: int = 1, unexplored: float = 0.0, **meta: Any) -> UnitTree:
    """A tree of one choice."""
    leaves = [leaf((i,), (p,), outcome, proposals=proposals) for i, (p, outcome) in enumerate(parts)]
    return unit_tree(leaves, unexplored=unexplored, **meta)


FAIR = coin((0.5, HEADS), (0.5, TAILS), proposals=0)


def decided(
    off: UnitTree | None,
    on: UnitTree | None,
    *,
    reference: tuple[Mass, ...] | None = None,
    predicates: tuple[Predicate, ...] = (SHORT,),
    tolerance: float = 1e-5,
) -> ExactDecision:
    """The decision on two trees; a lost unit has none."""
    plan = exact_study(
        {"c": Family(reference=reference, events=EVENTS)}, predicates=predicates, tolerance=tolerance
    )
    units = {"walk.c.off": off, "walk.c.on": on}
    trees = {unit: tree for unit, tree in units.items() if tree is not None}
    found = decide(plan, SEAL, {}, units.keys() - trees.keys(), trees)
    assert (found.m, found.configurations) == (0, ())
    assert read_machine(dump_file(to_json(found)), "decisions", Decisions, where="-") == found
    assert found.exact is not None and found.exact.premise is None
    return found.exact.configurations[0]


def admission(**checks: Any) -> TreeAdmission:
    return replace(GOOD, **checks)


BAD = PathCheck(checked=3, differences=1, ok=False)
UNSEEN = PathCheck(checked=0, differences=0, ok=True)
EVEN = ((0.5, HEADS), (0.5, TAILS))
TILTED = ((0.6, HEADS), (0.4, TAILS))


def both(
    off: list[tuple[Outcome, int]],
    on: list[tuple[Outcome, int]],
    *,
    walked: dict[str, UnitTree] | None = None,
    lost: frozenset[str] = frozenset(),
    **more: Any,
) -> Decisions:
    """A study that draws and walks `c`, and walks `d` only."""
    reference = (Mass(outcome=HEADS, p=0.5), Mass(outcome=TAILS, p=0.5))
    family = Family(reference=reference, events=EVENTS)
    plan = exact_study(
        {"c": family, "d": family},
        drawn=["c"],
        draws=(sum(n for _, n in off), sum(n for _, n in on)),
        premise_alpha=0.05,
        **more,
    )
    tallies = {"main.c.off": tally_of("main.c.off", off), "main.c.on": tally_of("main.c.on", on, proposals=9)}
    trees = {f"walk.{c}.{arm}": coin(*EVEN) for c in "cd" for arm in ("off", "on")} | (walked or {})
    found = decide(
        plan, SEAL, {u: t for u, t in tallies.items() if u not in lost}, lost,
        {u: t for u, t in trees.items() if u not in lost},
    )  # fmt: skip
    assert read_machine(dump_file(to_json(found)), "decisions", Decisions, where="-") == found
    return found


HALF = [(HEADS, 500), (TAILS, 500)]


def exact_of(decisions: Decisions) -> ExactDecisions:
    assert decisions.exact is not None
    return decisions.exact
