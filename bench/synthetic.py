"""Small studies and made-up draws for benchmarks and tests; no engine, no files."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from prereg.analyse.tally import Tally, tally
from prereg.model import law
from prereg.model.law import Decoded, Event, Events, Family, Mass, Outcome, Predicate, Predicates
from prereg.model.predictions import Prediction, Predictions
from prereg.model.record import Counters, Record
from prereg.model.study import (
    Arm,
    Author,
    Ceilings,
    Configuration,
    DecisionRule,
    PowerPlan,
    PromptLookup,
    Protocol,
    Sampling,
    SeedBlock,
    Seeds,
    Stage,
    Stopping,
    Study,
)

SEAL = "5" * 64
NONE = Counters(proposals=0, verifications=0, accepted=0)


def tokens(*ids: int, finish: str | None = "length") -> Decoded:
    """A decoded outcome."""
    return Decoded(tokens=ids, finish=finish)


def study(
    families: Mapping[str, Family],
    *,
    rule: Literal["channel-S", "event-gap"] = "channel-S",
    draws: int | tuple[int, int] = 100,
    alpha: float = 0.05,
    threshold: float = 0.01,
    allowance: float = 0.005,
    missing: Literal["refuse", "bound"] = "refuse",
    predicates: Sequence[Predicate] = (),
    predictions: Sequence[Prediction] = (),
    title: str = "A made-up study",
    drafter: bool = True,
) -> Study:
    """A study with one stage, a configuration for each family, and every predicate bound to each of them.

    `draws` are those of the off and the on arm.
    """
    off, on = (draws, draws) if isinstance(draws, int) else draws
    channel_s = rule == "channel-S"
    protocol = Protocol(
        study="made-up",
        title=title,
        authors=(Author(name="A. Author", principal="author@example.org"),),
        question="Does speculation change the law of what is returned?",
        template="conformance" if channel_s else "two-arm",
        models={},
        prompts={},
        arms=(
            Arm(id="off", role="reference", speculation=False),
            Arm(id="on", role="test", speculation=channel_s),
        ),
        configurations=tuple(
            Configuration(
                id=name,
                role="probe",
                about=f"configuration {name}",
                build="none",
                adapter="command",
                model=None,
                prompt=None,
                horizon=None,
                features={},
                drafter=PromptLookup(max_ngram=2, max_tokens=3) if drafter else None,
                predicates=tuple(p.id for p in predicates),
                command=("true",),
            )
            for name in families
        ),
        stages=(Stage(id="main", purpose="discovery", configurations=tuple(families)),),
        sampling={
            "off": Sampling(draws=off, rows=1, shard_requests=off),
            "on": Sampling(draws=on, rows=1, shard_requests=on),
        },
        alpha=alpha,
        decision=DecisionRule(
            rule=rule, threshold=threshold, calibration_allowance=allowance if channel_s else None
        ),
        missing=missing,
        stopping=Stopping(rule="fixed"),
        attempts=1,
        ceilings=Ceilings(study_seconds=3600, unit_seconds=600, request_seconds=60, on_ceiling="INVALID"),
        exclusions=(),
        runtime="venv",
        power=PowerPlan(gap=0.05, witness=0.001, target=0.9),
    )
    blocks, at = [], 1000
    for unit in protocol.units():
        need = protocol.sampling[unit.arm].requests
        blocks.append(
            SeedBlock(id=f"b{len(blocks)}", role="discovery", unit=unit.id, first=str(at), end=str(at + need))
        )
        at += need
    return Study(
        protocol=protocol,
        seeds=Seeds(study="made-up", blocks=tuple(blocks)),
        events=Events(study="made-up", harness_sha256=None, configurations=dict(families)),
        predicates=Predicates(study="made-up", predicates=tuple(predicates)),
        predictions=Predictions(study="made-up", predictions=tuple(predictions)),
    )


def draws_of(
    unit: str, outcomes: Sequence[tuple[Outcome, int]], *, counters: Counters = NONE
) -> Iterator[Record]:
    """Records of `unit` with each outcome that often."""
    number = 0
    for outcome, times in outcomes:
        for _ in range(times):
            yield Record(
                seal=SEAL,
                unit=unit,
                shard=0,
                attempt=1,
                draw=number,
                seed=str(number),
                row=0,
                outcome=outcome,
                counters=counters,
            )
            number += 1


def tally_of(unit: str, outcomes: Sequence[tuple[Outcome, int]], *, proposals: int = 0) -> Tally:
    """The tally of made-up draws; `proposals` is the unit's sum."""
    base = tally(unit, draws_of(unit, outcomes))
    return Tally(
        unit=unit,
        draws=base.draws,
        crashes=base.crashes,
        outcomes=base.outcomes,
        proposals=proposals,
        verifications=proposals,
        accepted=proposals // 2,
    )


def enumerated_family(vocabulary: int, horizon: int, seed: int) -> Family:
    """The channel-S family over all outcomes of a random law: singletons, prefixes, lengths and the rest."""
    source = random.Random(seed)
    support: list[Outcome] = [
        Decoded(tokens=ids, finish="length")
        for ids in itertools.product(range(1, vocabulary), repeat=horizon)
    ]
    for length in range(horizon):
        support += [
            Decoded(tokens=(*ids, 0), finish="stop")
            for ids in itertools.product(range(1, vocabulary), repeat=length)
        ]
    weights = [source.random() ** 3 for _ in support]
    total = sum(weights)
    events: list[Event] = [law.OutcomeEvent(id=f"o{i}", outcome=o) for i, o in enumerate(support)]
    events.append(law.OtherEvent(id="other"))
    for size in (1, 2):
        events += [
            law.PrefixEvent(id="p" + "-".join(map(str, ids)), tokens=ids)
            for ids in itertools.product(range(vocabulary), repeat=size)
        ]
    events += [law.LengthEvent(id=f"n{n}", equals=n) for n in range(horizon + 1)]
    events.append(law.LongerEvent(id="longer", than=horizon))
    events += [law.FinishEvent(id=f"f-{f}", equals=f) for f in ("stop", "length")]
    events += [law.CrashEvent(id="crash"), law.ViolationEvent(id="violation")]
    return Family(
        reference=tuple(Mass(outcome=o, p=w / total) for o, w in zip(support, weights, strict=True)),
        events=tuple(events),
    )


def sample(family: Family, unit: str, n: int, seed: int, *, proposals: int = 0) -> list[Record]:
    """`n` records drawn from a family's reference law, each with `proposals` proposed tokens."""
    source = random.Random(seed)
    assert family.reference is not None
    picks = source.choices([m.outcome for m in family.reference], [m.p for m in family.reference], k=n)
    counters = Counters(proposals=proposals, verifications=min(proposals, 1), accepted=0)
    return list(draws_of(unit, [(o, 1) for o in picks], counters=counters))
