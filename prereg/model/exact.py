"""What the exact stage decides, and the test of its premise (docs/formats.md section 14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prereg.model.arms import PerArm, Shares
from prereg.model.attempts import Attempts, Duplicates
from prereg.model.beside import MechanismDistance
from prereg.model.law import Outcome

ExactStageVerdict = Literal["DEPARTS", "EQUAL_WITHIN_TOLERANCE", "INCONCLUSIVE", "VOID", "INVALID"]
ExactReason = Literal[
    "unit-lost",
    "ceiling",
    "tree",
    "admission",
    "oracle",
    "nothing-proposed",
    "total-variation",
    "witness",
    "interval",
    "within-tolerance",
]
PremiseStatus = Literal["FAILS", "NOT_REJECTED", "NOT_TESTED", "INVALID"]
PremiseReason = Literal["unit-lost", "not-admitted", "outside-law", "bound", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactWitness:
    """An outcome that only the on arm returns and that violates a predicate."""

    outcome: Outcome
    predicate: str
    p: float
    """Its mass in the on arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleGap:
    """The off arm's law beside the reference."""

    outcomes: int
    """Outcomes of the reference."""
    largest: float
    """Greatest |mass_off - P| over all outcomes of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMasses:
    """The masses of a listed event."""

    event: str
    p: float | None
    """P of it; None without a reference."""
    off: float
    on: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDecision:
    """The decision on one configuration of the exact stage."""

    id: str
    verdict: ExactStageVerdict
    reasons: tuple[ExactReason, ...]
    tv_lower: float | None
    tv_upper: float | None
    unexplored: Shares
    runs: PerArm
    leaves: PerArm
    outcomes: PerArm
    """Different ones."""
    proposals: int | None
    verifications: int | None
    accepted: int | None
    crash_mass: Shares
    D: float | None
    D_event: str | None
    D_complement: bool | None
    witness_mass: float | None
    witnesses: tuple[ExactWitness, ...]
    oracle: OracleGap | None
    masses: tuple[EventMasses, ...]
    hypothesis: MechanismDistance | None = None
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
class PremiseArm:
    """An arm's draws beside the law of its tree."""

    draws: int
    outside: int
    """Draws whose outcome no leaf of the arm has."""
    excess: float
    """How far a bound lies beyond the mass that the tree allows, over the listed events."""
    event: str
    """The first event that attains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PremiseTest:
    """Whether one configuration's draws follow the law of its tree (paper §3, premise iii)."""

    id: str
    status: PremiseStatus
    reasons: tuple[PremiseReason, ...]
    level: float
    off: PremiseArm | None
    on: PremiseArm | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    alpha: float
    m: int
    """Configurations that are in a stage of draws and in the exact stage."""
    configurations: tuple[PremiseTest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDecisions:
    """`exact` of analysis/decisions.json."""

    tolerance: float
    configurations: tuple[ExactDecision, ...]
    premise: Premise | None
