"""What an engine returned beside a draw's tokens, as JSON and as bytes (docs/formats.md section 7)."""

from __future__ import annotations

from prereg.codec.canonical import MalformedJson, dumps, loads_machine
from prereg.codec.convert import entry_from
from prereg.codec.second_edition import entry_fault
from prereg.model.law import Crashed, Outcome, RecordEntry, Valued
from prereg.model.study import Protocol, Unit
from prereg.seal.packing import BadShard

Entries = tuple[RecordEntry, ...]

KEY = b',"record":'
"""What stands between an outcome and its record in a line; in no canonical outcome can it occur."""

MOST = 100_000
WORDS = ("-inf", "inf", "nan")


def has_records(protocol: Protocol, unit: Unit) -> bool:
    """Whether each record of a unit of draws has `record`, and none lacks it."""
    return protocol.configuration(unit.configuration).records is not None


def entries_fault(value: object) -> str | None:
    """What the record schema has against the JSON of `record`, or None."""
    if not isinstance(value, list) or len(value) > MOST:
        return f"record is no list of at most {MOST} entries"
    for entry in value:
        if not isinstance(entry, dict) or entry.keys() != {"tokens", "values"}:
            return "an entry of record is not tokens and values"
        tokens, values = entry["tokens"], entry["values"]
        if not isinstance(tokens, list) or len(tokens) > MOST or not all(_is_token(t) for t in tokens):
            return f"the tokens of an entry of record are not a list of at most {MOST} token ids"
        if not isinstance(values, list) or len(values) > MOST or not all(_is_value(v) for v in values):
            return f"the values of an entry of record are not a list of at most {MOST} numbers"
    return None


def _is_token(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_value(value: object) -> bool:
    return type(value) in (int, float) or (isinstance(value, str) and value in WORDS)


def entries_from(value: object) -> Entries:
    """The entries of the JSON of `record`. Raises BadShard if they are not of the form of section 7."""
    if fault := entries_fault(value):
        raise BadShard(fault)
    assert isinstance(value, list)
    entries = tuple(entry_from(entry) for entry in value)
    for entry in entries:
        if fault := entry_fault(entry):
            raise BadShard(f"an entry of record {fault}")
    return entries


def beside_fault(outcome: Outcome, entries: Entries) -> str | None:
    """What an outcome and what is beside it have against each other, or None."""
    if isinstance(outcome, Valued):
        return "a value has a record beside it"
    return "a crash has an entry of record" if isinstance(outcome, Crashed) and entries else None


def entries_bytes(entries: Entries) -> bytes:
    """The canonical bytes of `record`. Raises BadShard for entries that no reader would let through."""
    try:
        data = dumps([{"tokens": list(entry.tokens), "values": list(entry.values)} for entry in entries])
    except MalformedJson as error:
        raise BadShard(error.what) from None
    if entries_of(data) != entries:
        raise BadShard("record is not read back as it was")
    return data


def entries_of(data: bytes) -> Entries:
    """The entries of the canonical bytes of `record`. Raises BadShard."""
    try:
        return entries_from(loads_machine(data + b"\n", where="record"))
    except MalformedJson as error:
        raise BadShard(error.what) from None
