"""What is said beside a verdict and moves none: exposure, records, mechanisms (sections 12, 15 and 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RecordsVerdict = Literal["INCOMPLETE", "INVALID", "VOID", "INCONCLUSIVE", "FAILS", "NOT_REJECTED"]
RecordsReason = Literal["no-reference", "unit-lost", "calibration", "nothing-proposed", "mismatch", "none"]
CompatibilityStatus = Literal["COMPATIBLE", "NOT_COMPATIBLE", "VOID", "INVALID"]
DistanceStatus = Literal["MATCHES", "DEPARTS", "INCONCLUSIVE", "VOID", "INVALID"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """How many on-arm draws had a verification step with a proposal."""

    draws: int | None
    """None if the unit is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBounds:
    """Counts and one-sided bounds of a record event: some mismatch, or one at a position."""

    event: str
    k_off: int
    k_on: int
    L_off: float
    U_off: float
    L_on: float
    U_on: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsDecision:
    """What channel R says of one configuration."""

    verdict: RecordsVerdict
    reasons: tuple[RecordsReason, ...]
    D: float | None
    D_event: str | None
    bounds: tuple[RecordBounds, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compatibility:
    """Whether on-arm draws are consistent with the registered mechanism; others are not excluded."""

    id: str
    status: CompatibilityStatus
    level: float
    excess: float | None
    """How far a bound lies beyond mu_H(A), over the listed events."""
    event: str | None
    impossible: int | None
    """Draws with mu_H = 0."""
    null_rejected: bool | None
    """Whether the same test rejects P; this and the next three say of P what stands above of mu_H."""
    null_excess: float | None
    null_event: str | None
    null_impossible: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismDistance:
    """How far the on arm's tree is from the registered mechanism's law, and from P."""

    id: str
    status: DistanceStatus
    tv_lower: float | None
    tv_upper: float | None
    null_tv_lower: float | None
    null_tv_upper: float | None
