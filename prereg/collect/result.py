"""How a run of `collect` ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prereg.errors import EvidenceIncomplete
from prereg.model.attempts import Copies, Tried
from prereg.model.record import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectResult:
    """How a run of `collect` ended."""

    complete: bool
    """False after an interruption: `collect` again goes on where this run stopped."""
    planned: int
    """Shards of the plan."""
    stored: int
    """Shards that are stored now, of each unit in its present attempt."""
    draws: int
    """Draws that this run stored."""
    leaves: int
    """Leaves of the trees that this run stored."""
    invalid: Mapping[str, str]
    """Units that are lost, each with its reason."""
    left_open: frozenset[str] = frozenset()
    """Those of them that a ceiling took, where the protocol's word for that is INCONCLUSIVE."""
    tried: Mapping[str, Tried] = field(default_factory=dict)
    """Units that failed at least once, in this run or an earlier one."""
    attempts: int = 1
    """How often the protocol allows a unit to be tried."""
    duplicates: Mapping[str, Copies] = field(default_factory=dict)
    """Second results of shards, of this run and earlier ones, by unit."""
    crashes: Mapping[str, int]
    """Draws and leaves of this run whose outcome is a crash, by unit."""
    network: Network | None
    """None if this run had nothing left to draw."""
    network_reason: str | None
    seconds: float
    commit: str

    @property
    def exit_code(self) -> int:
        """0 when the collection is complete, whatever was lost; 3 when it goes on."""
        return 0 if self.complete else EvidenceIncomplete.exit_code
