"""An engine's own output law, as the leaves of its tree of random choices (design: the exact channel)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from prereg.model.law import Mass, Outcome

ExactVerdict = Literal["DEPARTS", "EQUAL_WITHIN_TOLERANCE", "INCONCLUSIVE", "VOID"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLeaf:
    """One path through the engine's choices, and what the engine returned at its end."""

    choices: tuple[int, ...]
    p: tuple[float, ...]
    """The probability that the engine itself gave to each choice taken."""
    outcome: Outcome
    proposals: int
    accepted: int
    verifications: int = 0
    kinds: str = ""
    """A letter a choice: token, drafter, accept, residual, bonus (docs/formats.md section 14)."""
    digest: str = ""
    """Of what the engine's stateful parts saw and held."""
    closed: bool = False
    """Told from the row of its last choice, not run by itself."""
    filled: int = 0
    """Rows past the first mismatch that were filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCheck:
    """What the walk itself noticed while it replayed prefixes."""

    differences: int
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCheck:
    """Paths, or seeds, that were run again."""

    checked: int
    differences: int
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefillCheck:
    """Paths whose rows past the first mismatch were filled otherwise."""

    eligible: int
    checked: int
    differences: int
    expanded: bool
    """Those rows were walked too."""
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedCheck:
    """Leaves told from a row that were run after all."""

    closed: int
    checked: int
    differences: int
    reopened: bool
    """No leaf is told from a row."""
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomnessCheck:
    """Random numbers that the engine used beside its choices."""

    unaccounted: int
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAdmission:
    """Whether the engine's choices were the only chance, and its answers the same each time."""

    walk: WalkCheck
    replay: PathCheck
    refill: RefillCheck
    closed: ClosedCheck
    randomness: RandomnessCheck
    interference: PathCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMeta:
    """`tree` of a shard's meta (docs/formats.md section 14)."""

    runs: int
    unexplored: float
    admission: TreeAdmission


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTree:
    """The authenticated record of one exact unit."""

    leaves: tuple[TreeLeaf, ...]
    meta: TreeMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One arm, explored."""

    leaves: tuple[TreeLeaf, ...]
    runs: int
    unexplored: float
    """Mass of the frontier: what no leaf accounts for."""
    admission: dict[str, Any]
    """The engine side's checks, each with its numbers and `ok`."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResult:
    """What two trees say of one configuration."""

    verdict: ExactVerdict
    reason: str
    """One sentence on what the verdict rests on."""
    tolerance: float
    tv_lower: float
    tv_upper: float
    off: tuple[Mass, ...]
    on: tuple[Mass, ...]
    slack_off: float
    slack_on: float
    witness_mass: float
    """Mass of on-arm outcomes that the off arm cannot return and that break a predicate."""
    event: str | None
    """Listed event whose arms surely differ most."""
    event_gap: float | None
    """Its gap of explored mass, on minus off."""
    event_gap_lower: float | None
    """Where the gap of the whole laws lies, whatever is unexplored: from here to `event_gap_upper`."""
    event_gap_upper: float | None
    proposals: int
    accepted: int
