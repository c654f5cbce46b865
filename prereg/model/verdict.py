"""Verdicts are values, never exceptions (docs/formats.md sections 10 to 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prereg.model.arms import PerArm as PerArm
from prereg.model.attempts import Attempts, Duplicates
from prereg.model.beside import Compatibility, Exposure, RecordsDecision
from prereg.model.exact import ExactDecisions
from prereg.model.law import Outcome
from prereg.model.study import Rule

Verdict = Literal["FAILS", "DIFFERS", "NOT_REJECTED", "INCONCLUSIVE", "VOID", "INVALID"]
Status = Literal["HELD", "FAILED", "NOT_DETERMINED"]
Reason = Literal[
    "unit-lost",
    "ceiling",
    "off-arm-violation",
    "calibration-excess",
    "nothing-proposed",
    "witness",
    "bound",
    "none",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    outcome: Outcome
    predicate: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Reference arm against the enumerated law P."""

    passed: bool
    violations: int
    excess: float
    """Largest L_off(A) - P(A) over the family."""
    event: str
    complement: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRow:
    """Counts and one-sided bounds of a listed event; its complement's follow from them."""

    event: str
    p: float | None
    k_off: int
    k_on: int
    L_off: float
    U_off: float
    L_on: float
    U_on: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on one configuration."""

    id: str
    rule: Rule
    """Never `exact`, which decides nothing here."""
    verdict: Verdict
    reasons: tuple[Reason, ...]
    B: int
    level: float
    draws: PerArm
    crashes: PerArm
    proposals: int | None
    verifications: int | None
    accepted: int | None
    D: float | None
    D_event: str | None
    D_complement: bool | None
    eligible: bool
    witnesses: tuple[Witness, ...]
    calibration: Calibration | None
    bounds: tuple[BoundRow, ...]
    exposed: Exposure | None = None
    """There exactly in edition 2."""
    records: RecordsDecision | None = None
    """There exactly where the protocol gives the configuration `records`."""
    hypothesis: Compatibility | None = None
    """There exactly where a mechanism is registered."""
    attempts: Attempts | None = None
    """There exactly in edition 3."""
    duplicates: Duplicates | None = None
    """There exactly in edition 3."""

    @property
    def lost(self) -> bool:
        """Whether it lost a unit: INVALID, or left open by a ceiling (docs/formats.md section 21)."""
        return self.verdict == "INVALID" or "ceiling" in self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionStatus:
    id: str
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """analysis/decisions.json."""

    schema: Literal["prereg/decisions/v1"] = "prereg/decisions/v1"
    study: str
    seal: str
    rules: Literal[1]
    alpha: float
    m: int
    configurations: tuple[Decision, ...]
    predictions: tuple[PredictionStatus, ...]
    exact: ExactDecisions | None = None
    """There exactly when the study has an exact stage."""
