"""A sweep: what it tries on an engine, and what became of each case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

SweepVerdict = Literal[
    "DEPARTS",
    "CRASHES",
    "EQUAL_WITHIN_TOLERANCE",
    "INCONCLUSIVE",
    "VOID",
    "BOTH_CRASH",
    "NOT_COVERED",
]
"""The exact channel's verdicts; `CRASHES` if the engine fails only while it speculates, `BOTH_CRASH` if it
fails without as well, `NOT_COVERED` for a feature of the engine that no case tries."""

DEPARTURES: tuple[SweepVerdict, ...] = ("DEPARTS", "CRASHES")
"""What counts as a departure of the engine from its own plain sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A sealed model, a prompt and a horizon on which a case may be tried."""

    seed: str
    initializer_range: float
    """Scale of the weights: small is flat, large is peaked."""

    prompt: str
    """Letters of the model's vocabulary."""

    horizon: int
    letters: str = ""
    """The model's vocabulary but for its end token, where it is not the table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Features of the engine, alone or together."""

    name: str
    features: dict[str, Any]
    """What is swept: each of them must change the law of plain sampling, or the case tests nothing."""

    beside: dict[str, Any]
    """Further features that it takes to see them."""

    source: str
    """Where the engine documents the features."""

    makes: tuple[str, ...]
    """Classes of the engine that these features bring into play."""

    note: str
    deterministic: bool
    """Every try has one outcome, so the tries count in place of outcomes: all of them are walked. What makes
    it so belongs into `beside`: without it the law would have too many outcomes at such horizons."""

    tries: tuple[Try, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is tried on one kind of engine, as data of the harness."""

    adapter: str
    model: dict[str, Any]
    """The model's description but for seed and scale."""

    drafter: dict[str, Any]
    aliases: dict[str, str]
    """Names of features that the engine calls otherwise."""

    excluded: dict[str, str]
    """What the engine offers that is no sampling feature, each with the reason."""

    uncovered: dict[str, str]
    """Sampling features that no case tries, each with the reason."""

    cases: tuple[Case, ...]
    digest: str
    """Of the table's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one case, on the try that says most."""

    case: str
    verdict: SweepVerdict
    reason: str
    """One sentence on why."""

    features: dict[str, Any]
    beside: dict[str, Any]
    source: str
    note: str
    tried: Try | None
    attempts: int
    """Tries that were walked."""

    agreeing: int
    """Walked tries that were found equal and tested something."""

    tv_lower: float | None
    tv_upper: float | None
    witness_mass: float | None
    event: str | None
    event_gap: float | None
    activity: dict[str, float]
    """Total variation of plain sampling with all features and without the named one."""

    outcomes: int
    """Outcomes of the off arm with a mass of at least `OUTCOME_MASS`."""

    proposals: int
    accepted: int
    runs_off: int
    runs_on: int
    crash_off: dict[str, float]
    """Mass by the type of the error, off arm and on arm."""

    crash_on: dict[str, float]
    failing_path: dict[str, Any] | None
    seconds: float


OUTCOME_MASS = 1e-6
