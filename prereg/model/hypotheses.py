"""Mechanism hypotheses: what is registered, where, and by which law (docs/formats.md section 15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesesPlan:
    """What the protocol says of the hypotheses that a study registers."""

    alpha: float | None
    """Error budget of compatibility by draws; None where no registered configuration is drawn."""
    allowance: float
    """How far a bound may lie beyond mu_H(A)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A suspected mechanism, by the id of its simulator."""

    id: str
    class_: str
    """The class of faults that it belongs to (JSON key `class`)."""
    site: str
    """Where in the engine's code it sits."""
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One configuration and the one hypothesis that is registered for it."""

    configuration: str
    hypothesis: str
    cause: str
    """Configurations with the same cause are confirmed once."""
    priority: int
    """Which of them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypotheses:
    """hypotheses.json."""

    schema: Literal["prereg/hypotheses/v1"] = "prereg/hypotheses/v1"
    study: str
    hypotheses: tuple[Hypothesis, ...]
    configurations: tuple[Registration, ...]
