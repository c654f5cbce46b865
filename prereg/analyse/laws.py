"""The law that the leaves of an arm add up to, and what two such laws say of each other (section 14).

Sums are correctly rounded (`math.fsum`). What a tree leaves unexplored enters as slack: with explored masses
a (off) and b (on), slacks s and t and D' = sum of max(0, a - b), the total variation lies in
[D' - t, D' + s], because unexplored mass can at most fill the deficit of one side, or fall on outcomes of its
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prereg.analyse.events import canonical
from prereg.analyse.shape import SUM_TOLERANCE, shape_fault
from prereg.model.exact import ExactReason, ExactWitness
from prereg.model.law import Crashed, Mass, Outcome, Predicate
from prereg.model.tree import ExactVerdict, Tree, UnitTree
from prereg.stats.membership import breaks

ORACLE_TOLERANCE = 1e-6
"""The off arm may differ from the reference by this much: the engines' arithmetic is float32."""


def law_of(tree: Tree | UnitTree) -> dict[Outcome, float]:
    """The explored mass of every outcome that a leaf has; a leaf weighs the product of its probabilities."""
    parts: dict[Outcome, list[float]] = {}
    for leaf in tree.leaves:
        parts.setdefault(leaf.outcome, []).append(math.prod(leaf.p))
    return {outcome: math.fsum(weights) for outcome, weights in parts.items()}


def slack_of(law: Mapping[Outcome, float]) -> float:
    """What the leaves do not account for."""
    return max(0.0, 1.0 - math.fsum(law.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLaw:
    """One arm's tree, added up."""

    mass: Mapping[Outcome, float]
    """Of every outcome that some leaf has."""
    slack: float
    unexplored: float
    """What the walk says that it left."""
    fault: str | None
    """Why the leaves are no tree, or None."""
    runs: int
    leaves: int
    crash_mass: float
    proposals: int
    """This and the next two: sums over the leaves that the engine ran."""
    verifications: int
    accepted: int

    @property
    def complete(self) -> bool:
        """Whether nothing is unexplored."""
        return self.slack <= SUM_TOLERANCE

    def masses(self) -> tuple[Mass, ...]:
        """The law as a list, heaviest first."""
        ordered = sorted(self.mass.items(), key=lambda item: -item[1])
        return tuple(Mass(outcome=outcome, p=p) for outcome, p in ordered)


def arm_law(tree: Tree | UnitTree) -> ArmLaw:
    """Add up the leaves of one arm and check that they are a tree."""
    walk = tree.meta if isinstance(tree, UnitTree) else tree
    mass = law_of(tree)
    ran = [leaf for leaf in tree.leaves if not leaf.closed]
    return ArmLaw(
        mass=mass,
        slack=slack_of(mass),
        unexplored=walk.unexplored,
        fault=shape_fault(tree.leaves, walk.unexplored),
        runs=walk.runs,
        leaves=len(tree.leaves),
        crash_mass=math.fsum(p for outcome, p in mass.items() if isinstance(outcome, Crashed)),
        proposals=sum(leaf.proposals for leaf in ran),
        verifications=sum(leaf.verifications for leaf in ran),
        accepted=sum(leaf.accepted for leaf in ran),
    )


def tv_interval(off: ArmLaw, on: ArmLaw) -> tuple[float, float]:
    """Where the total variation of the two whole laws lies, whatever is unexplored."""
    b = on.mass
    distance = math.fsum(max(0.0, p - b.get(outcome, 0.0)) for outcome, p in off.mass.items())
    return max(0.0, distance - on.slack), min(1.0, distance + off.slack)


def oracle_difference(off: ArmLaw, reference: Iterable[Mass]) -> float:
    """How far the off arm's law is from the reference at least, over the outcomes of either.

    What the tree leaves unexplored may belong to any outcome, so that it excuses mass that is short of the
    reference, but none above it.
    """
    p = {mass.outcome: mass.p for mass in reference}
    excess = [off.mass.get(outcome, 0.0) - p.get(outcome, 0.0) for outcome in off.mass.keys() | p.keys()]
    return max([0.0, *excess, *(-x - off.slack for x in excess)])


def witnesses_of(off: ArmLaw, on: ArmLaw, predicates: Sequence[Predicate]) -> tuple[ExactWitness, ...]:
    """On-arm outcomes that the off arm cannot return and that break a rule, with the rule.

    Heaviest first, then by canonical bytes, then in the order of `predicates`. There is none while the off
    arm has unexplored mass, and none for a predicate that some off-arm outcome violates.
    """
    if not off.complete:
        return ()
    # No outcome of the off arm breaks any of these, so that whatever breaks one is the on arm's own.
    kept = [q for q in predicates if not any(breaks(outcome, q.rule) for outcome in off.mass)]
    found = [
        (ExactWitness(outcome=outcome, predicate=q.id, p=p), rank)
        for outcome, p in on.mass.items()
        for rank, q in enumerate(kept)
        if breaks(outcome, q.rule)
    ]
    found.sort(key=lambda item: (-item[0].p, canonical(item[0].outcome), item[1]))
    return tuple(witness for witness, _ in found)


def witness_mass(witnesses: Iterable[ExactWitness]) -> float:
    """The mass of the witnesses; an outcome that breaks two rules counts once."""
    return math.fsum({w.outcome: w.p for w in witnesses}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a verdict on two trees rests on."""

    admitted: bool
    """No admission check of either arm failed or looked at nothing."""
    oracle: float | None
    """The off arm's greatest difference from the reference, where it is known."""
    interval: tuple[float, float]
    """Of the total variation."""
    witness: bool
    tolerance: float


def verdict_of(off: ArmLaw, on: ArmLaw, given: Grounds) -> tuple[ExactVerdict, tuple[ExactReason, ...]]:
    """The first verdict that applies, and every reason for it. A lost unit is none of its business."""
    lower, upper = given.interval
    void: list[tuple[ExactReason, bool]] = [
        ("tree", off.fault is not None or on.fault is not None),
        ("admission", not given.admitted),
        ("oracle", given.oracle is not None and given.oracle > ORACLE_TOLERANCE),
    ]
    departs: list[tuple[ExactReason, bool]] = [
        ("total-variation", lower > given.tolerance),
        ("witness", given.witness),
    ]
    if reasons := _holding(void):
        return "VOID", reasons
    if on.proposals == 0:
        return "INCONCLUSIVE", ("nothing-proposed",)
    if reasons := _holding(departs):
        return "DEPARTS", reasons
    if upper <= given.tolerance:
        return "EQUAL_WITHIN_TOLERANCE", ("within-tolerance",)
    return "INCONCLUSIVE", ("interval",)


def _holding(reasons: Iterable[tuple[ExactReason, bool]]) -> tuple[ExactReason, ...]:
    return tuple(reason for reason, holds in reasons if holds)
