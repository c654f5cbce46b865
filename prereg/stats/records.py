"""Records beside the tokens against their reference: channel R (docs/formats.md section 16; paper §4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prereg.model.law import Decoded, Outcome, RecordEntry, RecordValue, ReferenceEntry
from prereg.model.study import Configuration, RecordsPlan

Values = Mapping[int, RecordValue]
"""What the reference says of some tokens."""


def record_events(configuration: Configuration) -> tuple[str, ...]:
    """The record events of a configuration: some mismatch, and one at each position up to the horizon.

    None without a replay to hold records to.
    """
    plan = configuration.records
    if plan is None or plan.reference == "none" or configuration.horizon is None:
        return ()
    return ("any", *(f"position-{i}" for i in range(1, configuration.horizon + 1)))


def matches(entry: RecordEntry, reference: Values, plan: RecordsPlan) -> bool:
    """Whether an entry is what the documented record says after its prefix.

    It has the values that are told, each has a reference value and agrees with it, and no token that it
    leaves out would have come before the last that is told.
    """
    if len(entry.values) < plan.told:
        return False
    for token, value in zip(entry.tokens, entry.values, strict=True):
        if token not in reference or not _agree(value, reference[token], plan.tolerance):
            return False
    # What agrees is a number or -inf.
    last = sorted(map(float, entry.values), reverse=True)[plan.told - 1]
    told = set(entry.tokens)
    return not any(
        float(value) - last > plan.tolerance for token, value in reference.items() if token not in told
    )


def _agree(value: RecordValue, reference: RecordValue, tolerance: float) -> bool:
    if isinstance(value, str) or isinstance(reference, str):
        return value == reference == "-inf"
    return abs(value - reference) <= tolerance


class Replay:
    """The reference of one configuration, asked which positions of a draw do not match it."""

    def __init__(self, reference: Iterable[ReferenceEntry], plan: RecordsPlan) -> None:
        self._plan = plan
        self._values: dict[tuple[int, ...], Values] = {
            row.prefix: dict(zip(row.entry.tokens, row.entry.values, strict=True)) for row in reference
        }

    def mismatches(self, outcome: Outcome, entries: Sequence[RecordEntry]) -> tuple[int, ...]:
        """The positions of a draw, from 1, that are mismatches; a crash has none."""
        if not isinstance(outcome, Decoded):
            return ()
        tokens = outcome.tokens
        found = []
        for i in range(max(len(tokens), len(entries))):
            values = self._values.get(tokens[:i])
            if (
                i >= len(tokens)
                or i >= len(entries)
                or values is None
                or not matches(entries[i], values, self._plan)
            ):
                found.append(i + 1)
        return tuple(found)
