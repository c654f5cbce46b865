"""Made-up trees of choices, and studies with an exact stage; no engine, no files."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.synthetic import study
from prereg.model.law import Decoded, Family, Outcome, Predicate
from prereg.model.predictions import Prediction
from prereg.model.study import DecisionRule, ExactPlan, SeedBlock, Stage, Study
from prereg.model.tree import (
    ClosedCheck,
    PathCheck,
    RandomnessCheck,
    RefillCheck,
    TreeAdmission,
    TreeLeaf,
    TreeMeta,
    UnitTree,
    WalkCheck,
)

GOOD = TreeAdmission(
    walk=WalkCheck(differences=0, ok=True),
    replay=PathCheck(checked=24, differences=0, ok=True),
    refill=RefillCheck(eligible=0, checked=0, differences=0, expanded=False, ok=True),
    closed=ClosedCheck(closed=0, checked=0, differences=0, reopened=False, ok=True),
    randomness=RandomnessCheck(unaccounted=0, ok=True),
    interference=PathCheck(checked=4, differences=0, ok=True),
)
DIGEST = "d" * 32


def leaf(
    choices: Sequence[int],
    p: Sequence[float],
    outcome: Outcome,
    *,
    kinds: str | None = None,
    proposals: int = 0,
    verifications: int = 0,
    accepted: int = 0,
    closed: bool = False,
) -> TreeLeaf:
    """A leaf; its choices are of tokens unless `kinds` says otherwise."""
    return TreeLeaf(
        choices=tuple(choices),
        p=tuple(p),
        outcome=outcome,
        proposals=proposals,
        verifications=verifications,
        accepted=accepted,
        kinds="t" * len(choices) if kinds is None else kinds,
        digest=DIGEST,
        closed=closed,
    )


def unit_tree(
    leaves: Sequence[TreeLeaf],
    *,
    unexplored: float = 0.0,
    runs: int | None = None,
    admission: TreeAdmission = GOOD,
) -> UnitTree:
    """The record of one exact unit."""
    meta = TreeMeta(runs=len(leaves) if runs is None else runs, unexplored=unexplored, admission=admission)
    return UnitTree(leaves=tuple(leaves), meta=meta)


def exact_study(
    families: Mapping[str, Family],
    *,
    drawn: Sequence[str] = (),
    draws: int | tuple[int, int] = 100,
    tolerance: float = 1e-5,
    premise_alpha: float | None = None,
    predicates: Sequence[Predicate] = (),
    predictions: Sequence[Prediction] = (),
    **more: Any,
) -> Study:
    """A study whose exact stage walks every family and whose stage of draws has those of `drawn`."""
    base = study(families, draws=draws, predicates=predicates, predictions=predictions, **more)
    stages = [Stage(id="walk", purpose="discovery", configurations=tuple(families), channel="exact")]
    if drawn:
        stages.insert(0, Stage(id="main", purpose="discovery", configurations=tuple(drawn)))
    protocol = replace(
        base.protocol,
        template="main" if drawn else "exact",
        stages=tuple(stages),
        sampling=base.protocol.sampling if drawn else {},
        decision=base.protocol.decision
        if drawn
        else DecisionRule(rule="exact", threshold=0, calibration_allowance=None),
        configurations=tuple(replace(c, adapter="hf", command=None) for c in base.protocol.configurations),
        exact=ExactPlan(
            tolerance=tolerance,
            runs=None,
            mass=0,
            close_last=True,
            close_floor=0,
            premise_alpha=premise_alpha,
        ),
    )
    blocks, at = [], 1000
    for unit in protocol.units():
        need = 4 if protocol.is_exact(unit) else protocol.sampling[unit.arm].requests
        blocks.append(
            SeedBlock(id=f"b{len(blocks)}", role="discovery", unit=unit.id, first=str(at), end=str(at + need))
        )
        at += need
    return replace(base, protocol=protocol, seeds=replace(base.seeds, blocks=tuple(blocks)))


def grown(vocabulary: int, horizon: int, seed: int, *, tilt: float = 0.0, drafter: bool = False) -> UnitTree:
    """A whole random tree: `vocabulary ** horizon` leaves that tell their tokens, each a choice.

    Trees of one seed have the same law; `tilt` moves that share of each row to its first token. With
    `drafter` each path begins with an acceptance that changes nothing, so that there are twice the leaves.
    """
    source = random.Random(seed)
    leaves: list[TreeLeaf] = []

    def grow(tokens: tuple[int, ...], p: tuple[float, ...]) -> None:
        if len(tokens) == horizon:
            outcome = Decoded(tokens=tokens, finish="length")
            if not drafter:
                leaves.append(leaf(tokens, p, outcome))
                return
            for index, share in ((0, 0.75), (1, 0.25)):
                leaves.append(
                    leaf(
                        (index, *tokens), (share, *p), outcome, kinds="a" + "t" * horizon, proposals=1,
                        verifications=1, accepted=1 - index,
                    )
                )  # fmt: skip
            return
        weights = [source.random() ** 2 + 0.01 for _ in range(vocabulary)]
        row = [w / sum(weights) * (1 - tilt) for w in weights]
        row[0] += tilt
        for token, q in enumerate(row):
            grow((*tokens, token), (*p, q))

    grow((), ())
    return unit_tree(sorted(leaves, key=lambda one: one.choices))
