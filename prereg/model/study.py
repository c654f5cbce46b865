"""The protocol and the seeds: what a study promises before any data (docs/formats.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from prereg.model.law import Events, Predicates

SeedRole = Literal["pilot", "calibration", "discovery", "confirmation", "held-out", "control"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    name: str
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """A random Llama-style network made from a sealed seed (paper §5)."""

    kind: Literal["tiny-llama"]
    seed: str
    initializer_range: float
    vocab: tuple[str, ...]
    eos: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    context: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    id: str
    role: Literal["reference", "test"]
    speculation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    kind: Literal["prompt-lookup"]
    max_ngram: int
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Engine build x model x prompt x horizon x sampling features."""

    id: str
    role: Literal["negative-control", "positive-control", "probe"]
    about: str
    build: str
    adapter: Literal["hf", "command"]
    model: str | None
    prompt: str | None
    horizon: int | None
    features: dict[str, Any]
    drafter: Drafter | None
    predicates: tuple[str, ...]
    command: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    id: str
    purpose: SeedRole
    configurations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How many draws an arm gets, and how requests are grouped."""

    draws: int
    rows: int
    """Draws that one request (one seed) returns."""
    shard_requests: int
    """Requests in one shard."""

    @property
    def requests(self) -> int:
        """Requests of a unit; `draws` is a multiple of `rows` in a checked protocol."""
        return self.draws // self.rows

    @property
    def shards(self) -> int:
        """Shards of a unit; the last may be short."""
        return -(-self.requests // self.shard_requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRule:
    rule: Literal["channel-S", "event-gap"]
    threshold: float
    calibration_allowance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    rule: Literal["fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    study_seconds: int
    unit_seconds: int
    request_seconds: int
    on_ceiling: Literal["INVALID"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPlan:
    """What the study wants to be able to see."""

    gap: float
    """Smallest event gap mu_on(A) - mu_off(A) of interest."""
    witness: float
    """Smallest witness probability of interest."""
    target: float
    """Probability with which either should be detected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Configuration x arm x stage: the smallest thing that can be INVALID."""

    stage: str
    configuration: str
    arm: str

    @property
    def id(self) -> str:
        return f"{self.stage}.{self.configuration}.{self.arm}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """protocol.json."""

    schema: Literal["prereg/protocol/v1"] = "prereg/protocol/v1"
    study: str
    title: str
    authors: tuple[Author, ...]
    question: str
    template: Literal["conformance", "two-arm"]
    models: dict[str, TinyModel]
    prompts: dict[str, tuple[int, ...]]
    arms: tuple[Arm, ...]
    configurations: tuple[Configuration, ...]
    stages: tuple[Stage, ...]
    sampling: dict[str, Sampling]
    alpha: float
    decision: DecisionRule
    missing: Literal["refuse", "bound"]
    stopping: Stopping
    attempts: Literal[1]
    ceilings: Ceilings
    exclusions: tuple[str, ...]
    runtime: Literal["venv"]
    power: PowerPlan

    @property
    def reference_arm(self) -> Arm:
        return next(a for a in self.arms if a.role == "reference")

    @property
    def test_arm(self) -> Arm:
        return next(a for a in self.arms if a.role == "test")

    def configuration(self, name: str) -> Configuration:
        """The configuration with that id. Raises KeyError."""
        for c in self.configurations:
            if c.id == name:
                return c
        raise KeyError(name)

    def units(self) -> Iterator[Unit]:
        """Every unit, in protocol order: stages, configurations, arms."""
        for stage in self.stages:
            for name in stage.configurations:
                for arm in self.arms:
                    yield Unit(stage=stage.id, configuration=name, arm=arm.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedBlock:
    """A half-open interval of seeds reserved for a unit."""

    id: str
    role: SeedRole
    unit: str
    first: str
    end: str

    @property
    def start(self) -> int:
        return int(self.first)

    @property
    def stop(self) -> int:
        return int(self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """seeds.json."""

    schema: Literal["prereg/seeds/v1"] = "prereg/seeds/v1"
    study: str
    blocks: tuple[SeedBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictClaim:
    configuration: str
    in_: tuple[str, ...]
    """Verdicts that make the prediction true (JSON key `in`)."""
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountClaim:
    configurations: tuple[str, ...]
    verdict: str
    at_least: int | None = None
    at_most: int | None = None
    kind: Literal["count"] = "count"


Claim = VerdictClaim | CountClaim


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    id: str
    statement: str
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """predictions.json."""

    schema: Literal["prereg/predictions/v1"] = "prereg/predictions/v1"
    study: str
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The parsed study files, cross-checked."""

    protocol: Protocol
    seeds: Seeds
    events: Events
    predicates: Predicates
    predictions: Predictions
