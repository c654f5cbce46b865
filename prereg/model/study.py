"""The protocol and the seeds: what a study promises before any data (docs/formats.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from prereg.model.hypotheses import Hypotheses, HypothesesPlan, Registration
from prereg.model.law import Events, Predicates
from prereg.model.predictions import Predictions

SeedRole = Literal["pilot", "calibration", "discovery", "confirmation", "held-out", "control"]
Channel = Literal["draws", "exact"]
Rule = Literal["channel-S", "event-gap", "exact"]


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
class PromptLookup:
    """Proposes what followed the last tokens where they stood before."""

    max_ngram: int
    max_tokens: int
    kind: Literal["prompt-lookup"] = "prompt-lookup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """Proposes what a model of its own says."""

    model: str
    """Id of one of the protocol's models."""
    max_tokens: int
    kind: Literal["assistant"] = "assistant"


Drafter = PromptLookup | Assistant


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPlan:
    """What an engine returns beside the tokens, and what it is held to (docs/formats.md section 16)."""

    kind: Literal["scores", "logprobs"]
    reference: Literal["replay", "none"]
    source: str
    """The documentation of what a record holds or, with `none`, why no reference can be named."""
    told: int
    """Values that an entry has at least."""
    tolerance: float
    """Values that differ by no more agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Engine build x model x prompt x horizon x sampling features."""

    id: str
    role: Literal["negative-control", "positive-control", "probe"]
    about: str
    build: str
    adapter: Literal["hf", "llamacpp", "command"]
    model: str | None
    prompt: str | None
    horizon: int | None
    features: dict[str, Any]
    drafter: Drafter | None
    predicates: tuple[str, ...]
    command: tuple[str, ...] | None
    records: RecordsPlan | None = None
    """There where its draws are recorded with what the engine returns beside the tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    id: str
    purpose: SeedRole
    configurations: tuple[str, ...]
    channel: Channel = "draws"
    """What is recorded of its units: draws, or the tree of the engine's choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How the requests of one engine build are grouped."""

    rows: int
    shard_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How many draws an arm gets, and how requests are grouped."""

    draws: int
    rows: int
    """Draws that one request (one seed) returns."""
    shard_requests: int
    """Requests in one shard."""
    builds: dict[str, Grouping] | None = None
    """What stands in for `rows` and `shard_requests` where a configuration has one of these builds."""

    def of_build(self, build: str) -> Sampling:
        """The sampling of the units whose configuration has that build; it has no `builds` itself."""
        if self.builds is None:
            return self
        grouping = self.builds.get(build, self)
        return replace(self, rows=grouping.rows, shard_requests=grouping.shard_requests, builds=None)

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
    rule: Rule
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
    on_ceiling: Literal["INVALID", "INCONCLUSIVE"]
    """What a configuration is called that lost a unit to a ceiling; INCONCLUSIVE is of edition 3."""
    memory_mib: int | None = None
    """Limit of memory of each worker's container, in 2^20 bytes (edition 3); None: the collector's own."""


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
class ExactPlan:
    """How far the trees of the exact stage are walked, and what their laws are held to."""

    tolerance: float
    """Total variation up to this is equality."""
    runs: int | None
    """Engine runs of a unit at most; None for no bound."""
    mass: float
    """A walk ends once the unexplored mass is at most this; with 0 and no bound of runs it is full."""
    close_last: bool
    """Whether the last choice before the horizon is told from its row."""
    close_floor: float
    """Paths lighter than this stay unexplored, as one number."""
    premise_alpha: float | None
    """Error budget of the test that draws follow the trees' laws; None for no test."""

    @property
    def full(self) -> bool:
        """Whether every path is walked."""
        return self.runs is None and self.mass == 0


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
class SignersPlan:
    """How many of whom sign the seal (docs/formats.md section 17)."""

    need: int
    principals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampPlan:
    """Whose time stamps are believed (docs/formats.md section 18)."""

    roots: str
    """The path, in the study's folder, of the authorities' certificates in PEM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """protocol.json."""

    schema: Literal["prereg/protocol/v1"] = "prereg/protocol/v1"
    study: str
    title: str
    authors: tuple[Author, ...]
    question: str
    template: Literal["conformance", "two-arm", "exact", "main"]
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
    attempts: int
    """How often a unit that fails may be tried, the first time included; 1 before edition 3."""
    ceilings: Ceilings
    exclusions: tuple[str, ...]
    runtime: Literal["venv", "container"]
    power: PowerPlan
    exact: ExactPlan | None = None
    """There exactly when one of the stages is exact."""
    edition: Literal[2, 3] | None = None
    """None for edition 1; `since` asks for it."""
    hypotheses: HypothesesPlan | None = None
    """There exactly when a mechanism is registered."""
    signers: SignersPlan | None = None
    """Whose signatures the seal needs; None where its author's is enough."""
    timestamp: TimestampPlan | None = None
    """There where the seal's signature needs a time stamp."""

    @property
    def named_authors(self) -> frozenset[str]:
        """The principals of all authors: whoever is one of them does not audit the study."""
        return frozenset(author.principal for author in self.authors)

    def since(self, edition: Literal[2, 3]) -> bool:
        """Whether what came with that edition of the formats applies to this study."""
        return (self.edition or 1) >= edition

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

    @property
    def exact_stage(self) -> Stage | None:
        """The exact stage; a protocol has one at most."""
        return next((s for s in self.stages if s.channel == "exact"), None)

    def stage(self, name: str) -> Stage:
        """The stage with that id. Raises KeyError."""
        for s in self.stages:
            if s.id == name:
                return s
        raise KeyError(name)

    def drawn(self) -> tuple[Configuration, ...]:
        """The configurations of the stages of draws, in protocol order; they share the error budget."""
        names = {name for s in self.stages if s.channel == "draws" for name in s.configurations}
        return tuple(c for c in self.configurations if c.id in names)

    def walked(self) -> tuple[Configuration, ...]:
        """The configurations of the exact stage, in the stage's order."""
        stage = self.exact_stage
        return () if stage is None else tuple(self.configuration(name) for name in stage.configurations)

    def units(self, channel: Channel | None = None) -> Iterator[Unit]:
        """Every unit (of one channel), in protocol order: stages, configurations, arms."""
        for stage in self.stages:
            if channel is not None and stage.channel != channel:
                continue
            for name in stage.configurations:
                for arm in self.arms:
                    yield Unit(stage=stage.id, configuration=name, arm=arm.id)

    def sampling_of(self, unit: Unit) -> Sampling:
        """How the draws of a unit are sampled: its arm's, as its configuration's build groups them.

        Raises KeyError for an arm without sampling or a configuration that is not there.
        """
        return self.sampling[unit.arm].of_build(self.configuration(unit.configuration).build)

    def is_exact(self, unit: Unit) -> bool:
        """Whether a unit is a tree and not draws. Raises KeyError for an unknown stage."""
        return self.stage(unit.stage).channel == "exact"


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
class Study:
    """The parsed study files, cross-checked."""

    protocol: Protocol
    seeds: Seeds
    events: Events
    predicates: Predicates
    predictions: Predictions
    hypotheses: Hypotheses | None = None
    """What hypotheses.json registers, where the study has one."""

    def registered(self, configuration: str) -> Registration | None:
        """The registration of a configuration, if there is one."""
        rows = () if self.hypotheses is None else self.hypotheses.configurations
        return next((row for row in rows if row.configuration == configuration), None)
