"""From authenticated records to counts (docs/formats.md sections 7 and 10).

A unit's draws are counted once by distinct outcome, and by distinct outcome and record; everything later asks
each of these, not each draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prereg.errors import VerificationFailed
from prereg.model.law import Crashed, Outcome, RecordEntry
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
    exposed: int = 0
    """Draws with a verification step that had a proposal."""
    told: tuple[tuple[Outcome, tuple[RecordEntry, ...], int], ...] | None = None
    """Every distinct pair of outcome and record, and how many draws had it; None without records."""


def tally(unit: str, records: Iterable[Record]) -> Tally:
    """Count the records of `unit`. Raises VerificationFailed for a record of another unit.

    The records must be authenticated: nothing but their unit is checked again here.
    """
    counts: dict[Key, int] = {}
    first: dict[Key, Outcome] = {}
    # Shards share equal records, so that most draws are told apart without a look into their records.
    pairs: dict[tuple[Key, int], int] = {}
    kept: dict[tuple[Key, int], tuple[RecordEntry, ...]] = {}
    draws = proposals = verifications = accepted = exposed = 0
    for record in records:
        if record.unit != unit:
            raise VerificationFailed(f"a record of unit {record.unit} among those of {unit}", where=unit)
        draws += 1
        counters = record.counters
        proposals += counters.proposals
        verifications += counters.verifications
        accepted += counters.accepted
        exposed += counters.verifications > 0
        k = key(record.outcome)
        if k in counts:
            counts[k] += 1
        else:
            counts[k] = 1
            first[k] = record.outcome
        if record.record is not None:
            pair = (k, id(record.record))
            pairs[pair] = pairs.get(pair, 0) + 1
            kept[pair] = record.record
    outcomes = tuple((first[k], n) for k, n in counts.items())
    return Tally(
        unit=unit,
        draws=draws,
        crashes=sum(n for outcome, n in outcomes if isinstance(outcome, Crashed)),
        outcomes=outcomes,
        proposals=proposals,
        verifications=verifications,
        accepted=accepted,
        exposed=exposed,
        told=_told(pairs, kept, first) if pairs else None,
    )


def _told(
    pairs: dict[tuple[Key, int], int],
    kept: dict[tuple[Key, int], tuple[RecordEntry, ...]],
    first: dict[Key, Outcome],
) -> tuple[tuple[Outcome, tuple[RecordEntry, ...], int], ...]:
    """The pairs with equal ones added up, in order of first appearance."""
    sums: dict[tuple[Key, tuple[RecordEntry, ...]], int] = {}
    for pair, n in pairs.items():
        place = (pair[0], kept[pair])
        sums[place] = sums.get(place, 0) + n
    return tuple((first[k], entries, n) for (k, entries), n in sums.items())
