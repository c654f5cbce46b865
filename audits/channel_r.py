"""Section 16: what the engine told beside the tokens, read and compared with the sealed reference.

Few different entries come again and again, so an entry is read once for its bytes, compared once for its
bytes and prefix, and a whole record once for its bytes and outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from audits.jsonc import read_number

Value = int | float | str
"""A number, or one of ``-inf``, ``inf`` and ``nan`` as text."""
_KEPT = 1 << 16
"""How many different entries, comparisons and records are remembered."""
_MOST = 100_000
"""The most entries of a record, and the most tokens and values of an entry, by its schema."""
_COUNT = rb"(?:0|[1-9][0-9]{0,14})"
_ENTRY = re.compile(rb'\{"tokens":\[(%(n)s(?:,%(n)s)*)\],"values":\[([^\[\]{}]+)\]\}' % {b"n": _COUNT})
"""The layout of an entry whose tokens are canonical and of the schema."""
_TEXTS = {b'"-inf"': "-inf", b'"inf"': "inf", b'"nan"': "nan"}


def entry_wrong(entry: Mapping[str, Any]) -> str | None:
    """What section 7 has against an entry that satisfies the schema, or None."""
    tokens, values = entry["tokens"], entry["values"]
    if len(tokens) != len(values):
        return f"{len(tokens)} tokens and {len(values)} values"
    if any(one >= other for one, other in pairwise(tokens)):
        return "tokens are not ascending and all different"
    return None


def record_wrong(record: list[dict[str, Any]] | None, outcome: Mapping[str, Any]) -> tuple[str, str] | None:
    """What section 7 has against a record (None: there is none) beside an outcome; JSON pointer and text."""
    if record is None:
        return "/record", "is not there, and the configuration has records"
    if "value" in outcome:
        return "/outcome", "a value, of a configuration without a command"
    if "crash" in outcome and record:
        return "/record", "is not [], with a crash"
    for i, entry in enumerate(record):
        if wrong := entry_wrong(entry):
            return f"/record/{i}", wrong
    return None


def agree(one: Value, other: Value, tolerance: float) -> bool:
    """Whether two values agree: numbers at most ``tolerance`` apart, or both ``-inf``."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other == "-inf"
    return abs(one - other) <= tolerance


def matches(entry: Mapping[str, Any], reference: Mapping[int, Value], told: int, tolerance: float) -> bool:
    """Whether an entry of a record matches the reference values after its prefix."""
    tokens, values = entry["tokens"], entry["values"]
    if len(values) < told:
        return False
    for token, value in zip(tokens, values, strict=True):
        if token not in reference or not agree(value, reference[token], tolerance):
            return False
    # All values are numbers or -inf here: nothing else agrees. A left-out `nan` is above nothing.
    least = sorted(map(float, values), reverse=True)[told - 1]
    left_out = reference.keys() - set(tokens)
    return not any(float(reference[token]) - least > tolerance for token in left_out)


def record_events(configuration: Mapping[str, Any]) -> list[str]:
    """The record events of a configuration, in order: none without records that have a reference."""
    plan = configuration.get("records")
    if plan is None or plan["reference"] != "replay":
        return []
    return ["any", *(f"position-{i}" for i in range(1, int(configuration["horizon"]) + 1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the records of one configuration should hold."""

    told: int
    tolerance: float
    values: dict[tuple[int, ...], dict[int, Value]] | None
    """By prefix and token; None where no reference can be named."""

    @staticmethod
    def of(plan: Mapping[str, Any], table: list[dict[str, Any]] | None) -> Reference:
        """From ``records`` of the protocol's configuration and the sealed table of ``events.json``."""
        values = None
        if table is not None:
            values = {
                tuple(row["prefix"]): dict(zip(row["entry"]["tokens"], row["entry"]["values"], strict=True))
                for row in table
            }
        return Reference(told=plan["told"], tolerance=float(plan["tolerance"]), values=values)


class RecordReader:
    """Reads the records of one configuration's units, each with the outcome that it stands beside."""

    def __init__(self, reference: Reference, part: Callable[[str, bytes], Any]) -> None:
        """``part`` reads ``outcome`` or ``record`` from bytes; None if not canonical and of the schema."""
        self._reference = reference
        self._part = part
        self._entry = lru_cache(maxsize=_KEPT)(self._read_entry)
        self._matches = lru_cache(maxsize=_KEPT)(self._compare)
        self.mismatches = lru_cache(maxsize=_KEPT)(self._mismatches)
        """The positions (from 1) at which a record mismatches, from the canonical bytes of the outcome and
        those of the record; none where no reference is named; None if the record is not as section 7 says."""

    def _read_entry(self, data: bytes) -> dict[str, Any] | None:
        match = _ENTRY.fullmatch(data) if len(data) <= _MOST else None
        if match is not None:
            texts = match[2].split(b",")
            values = [_TEXTS[text] if text in _TEXTS else read_number(text) for text in texts]
            entry: dict[str, Any] = {"tokens": [*map(int, match[1].split(b","))], "values": values}
            return None if None in values or entry_wrong(entry) else entry
        read = self._part("record", b"[" + data + b"]")
        if read is None or len(read) != 1 or entry_wrong(read[0]) is not None:
            return None
        entry = read[0]
        return entry

    def _compare(self, prefix: tuple[int, ...], data: bytes) -> bool:
        reference, entry = self._reference, self._entry(data)
        assert reference.values is not None and entry is not None
        known = reference.values.get(prefix)
        return known is not None and matches(entry, known, reference.told, reference.tolerance)

    def _mismatches(self, outcome: bytes, record: bytes) -> tuple[int, ...] | None:
        value = json.loads(outcome)  # its bytes were read strictly before
        if "tokens" not in value:
            return () if "crash" in value and record == b"[]" else None
        if record[:1] != b"[" or record[-1:] != b"]":
            return None
        # No text in an entry holds a brace, so entries can only meet in these three bytes; each piece is
        # read strictly on its own, and with it the whole.
        inner = record[1:-1]
        pieces = [b"{" + piece + b"}" for piece in inner[1:-1].split(b"},{")] if inner else []
        if len(pieces) > _MOST or b",".join(pieces) != inner or any(self._entry(p) is None for p in pieces):
            return None
        if self._reference.values is None:
            return ()
        tokens = value["tokens"]
        return tuple(
            i + 1
            for i in range(max(len(tokens), len(pieces)))
            if i >= len(tokens) or i >= len(pieces) or not self._matches(tuple(tokens[:i]), pieces[i])
        )
