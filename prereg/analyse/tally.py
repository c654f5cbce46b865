"""From authenticated records to counts (docs/formats.md sections 7 and 10).

A unit's draws are counted once by distinct outcome; everything later asks each distinct outcome, not each
draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prereg.errors import VerificationFailed
from prereg.model.law import Crashed, Outcome
from prereg.model.record import Record
from prereg.stats.membership import Key, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the draws of one unit add up to."""

    unit: str
    draws: int
    crashes: int
    outcomes: tuple[tuple[Outcome, int], ...]
    """Every distinct outcome and how many draws had it, in order of first appearance."""
    proposals: int
    verifications: int
    accepted: int


def tally(unit: str, records: Iterable[Record]) -> Tally:
    """Count the records of `unit`. Raises VerificationFailed for a record of another unit.

    The records must be authenticated: nothing but their unit is checked again here.
    """
    counts: dict[Key, int] = {}
    first: dict[Key, Outcome] = {}
    draws = proposals = verifications = accepted = 0
    for record in records:
        if record.unit != unit:
            raise VerificationFailed(f"a record of unit {record.unit} among those of {unit}", where=unit)
        draws += 1
        counters = record.counters
        proposals += counters.proposals
        verifications += counters.verifications
        accepted += counters.accepted
        k = key(record.outcome)
        if k in counts:
            counts[k] += 1
        else:
            counts[k] = 1
            first[k] = record.outcome
    outcomes = tuple((first[k], n) for k, n in counts.items())
    return Tally(
        unit=unit,
        draws=draws,
        crashes=sum(n for outcome, n in outcomes if isinstance(outcome, Crashed)),
        outcomes=outcomes,
        proposals=proposals,
        verifications=verifications,
        accepted=accepted,
    )
