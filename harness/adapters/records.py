"""What an engine returned beside the tokens, as entries of a record (`docs/formats.md`, section 7).

An entry is what the engine told of one position: token ids and a value for each. A configuration has
`records` {`kind`, ...} if its draws shall carry them; an adapter knows the kinds that its engine returns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.adapters.base import Entry
from harness.wire import BAD_REQUEST, JobError

LARGEST = 2.0**53
"""Numbers from here on are told as infinity: the mask of some processors is the least float32."""

MAX_ROWS = 10_000
"""Rows remembered: tiny models return the same ones over and over."""


def wanted(configuration: Mapping[str, Any], kind: str, told: bool, how: str) -> bool:
    """Whether a configuration asks for records; `JobError` if not of `kind`, or if it is not `told` to.

    `how` says which feature makes the engine return them.
    """
    records = configuration.get("records")
    if records is None:
        return False
    given = records.get("kind") if isinstance(records, dict) else None
    if given != kind:
        raise JobError(BAD_REQUEST, f"records.kind is {given!r}: this engine returns {kind!r}")
    if not told:
        raise JobError(BAD_REQUEST, f"records: this configuration returns no {kind} without {how}")
    return True


def number(value: np.float32) -> float | str:
    """The shortest decimal that is this float32, as a float64; what is no number as its name."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value) or abs(value) >= LARGEST:
        # JSON as the study writes it has no form for a whole number that large; processors use such as masks.
        return "inf" if value > 0 else "-inf"
    return float(str(value)) + 0.0  # no negative zero


def entry(values: Mapping[int, np.float32]) -> Entry:
    """The entry of these values by token."""
    tokens = sorted(values)
    return {"tokens": tokens, "values": [number(values[token]) for token in tokens]}


class Rows:
    """Whole rows (one value for each token of the vocabulary) as entries; each different row is made once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Entry] = {}

    def entries(self, rows: Sequence[npt.NDArray[np.float32]]) -> list[Entry]:
        """One entry for each of the rows (V,)."""
        return [self._entry(row) for row in rows]

    def _entry(self, row: npt.NDArray[np.float32]) -> Entry:
        key = row.tobytes()
        known = self._known.get(key)
        if known is None:
            known = {"tokens": list(range(len(row))), "values": [number(value) for value in row]}
            if len(self._known) < MAX_ROWS:
                self._known[key] = known
        return known
