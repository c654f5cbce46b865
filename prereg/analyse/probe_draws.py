"""Channel S on one configuration that belongs to no study: the sealed rules, with a family of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from prereg.analyse.decide import decide
from prereg.analyse.tally import Tally
from prereg.codec.convert import from_json
from prereg.model.law import Events, Family, Predicate, Predicates
from prereg.model.predictions import Predictions
from prereg.model.study import Configuration, DecisionRule, Protocol, Sampling, Seeds, Stage, Study
from prereg.model.verdict import Decision

ALPHA = 0.05
THRESHOLD = 0.01
ALLOWANCE = 0.005

STUDY, STAGE, CONFIGURATION = "probe", "probe", "probe"


def unit(arm: str) -> str:
    """The unit that an arm's tally is of."""
    return f"{STAGE}.{CONFIGURATION}.{arm}"


def decide_draws(
    protocol: Protocol,
    configuration: Mapping[str, Any],
    family: Family,
    predicates: Sequence[Predicate],
    tallies: Mapping[str, Tally],
    draws: int,
) -> Decision:
    """The verdict of channel S at alpha 0.05, threshold 0.01 and, with a reference law, allowance 0.005.

    `protocol` is any conformance protocol: its arms are taken, and nothing else of it counts. `tallies` is by
    `unit`. A family without a reference calibrates nothing and has no witnesses.
    """
    bound = replace(
        from_json({**configuration, "drafter": None}, Configuration, where=CONFIGURATION),
        predicates=tuple(predicate.id for predicate in predicates),
    )
    sampling = Sampling(draws=draws, rows=1, shard_requests=draws)
    alone = replace(
        protocol,
        study=STUDY,
        configurations=(bound,),
        stages=(Stage(id=STAGE, purpose="pilot", configurations=(CONFIGURATION,)),),
        exact=None,
        sampling={arm.id: sampling for arm in protocol.arms},
        alpha=ALPHA,
        decision=DecisionRule(rule="channel-S", threshold=THRESHOLD, calibration_allowance=ALLOWANCE),
    )
    study = Study(
        protocol=alone,
        seeds=Seeds(study=STUDY, blocks=()),
        events=Events(study=STUDY, harness_sha256=None, configurations={CONFIGURATION: family}),
        predicates=Predicates(study=STUDY, predicates=tuple(predicates)),
        predictions=Predictions(study=STUDY, predictions=()),
    )
    (decision,) = decide(study, "", tallies, ()).configurations
    return decision
