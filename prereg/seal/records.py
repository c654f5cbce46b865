"""Shards of records: authenticated from bytes, and written as bytes (docs/formats.md section 7).

A shard holds up to some hundred thousand lines, so a line is not parsed, validated and re-serialised as other
machine files are. Everything in it but the counters, the outcome and what stands beside it follows from the
plan: those are cut out, checked and cached, and the rest must equal, byte for byte, what the plan says. A
line that differs goes the slow way once, only to name the field at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NoReturn

from prereg.codec.canonical import MAX_SAFE, MalformedJson, dumps, loads_machine
from prereg.codec.convert import outcome_from, to_json
from prereg.model.law import Outcome, Valued
from prereg.model.plan import Shard
from prereg.model.record import Counters, Record, ShardMeta
from prereg.model.study import Protocol, Unit
from prereg.seal.beside import (
    KEY,
    Entries,
    beside_fault,
    entries_bytes,
    entries_fault,
    entries_of,
)
from prereg.seal.packing import BadShard, Encoded, pack, unpack

_COUNT = rb"(0|[1-9][0-9]{0,15})"


@cache
def _line(attempt: int) -> re.Pattern[bytes]:
    """How a line of that attempt begins, up to its outcome."""
    return re.compile(
        rb'\{"attempt":%d,"counters":\{"accepted":%b,"proposals":%b,"verifications":%b\},"draw":%b,"outcome":'
        % (attempt, _COUNT, _COUNT, _COUNT, _COUNT)
    )


_DIGEST = re.compile(r"[0-9a-f]{64}")
_UNIT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}")
_SEED = re.compile(r"0|[1-9][0-9]{0,19}")
_CACHE = 65_536
"""Outcomes, and what stands beside them, remembered while one shard is read."""


def encode_shard(records: Iterable[Record]) -> Encoded:
    """Serialise records as a shard. The same records give the same bytes.

    Raises BadShard for a record that the schema does not allow.
    """
    outcomes: dict[tuple[object, Outcome], bytes] = {}
    beside: dict[Entries, bytes] = {}
    lines = b"".join(_line_of(record, outcomes, beside) for record in records)
    return pack(lines)


def _line_of(
    record: Record, outcomes: dict[tuple[object, Outcome], bytes], beside: dict[Entries, bytes]
) -> bytes:
    """A record's line; `outcomes` and `beside` remember the bytes of outcomes and records, which repeat."""
    counters = record.counters
    outcome = record.outcome
    # 1, 1.0 and True are equal and hash alike, but are not the same JSON.
    kind = type(outcome.value) if isinstance(outcome, Valued) else None
    body = outcomes.get((kind, outcome))
    value = {
        "seal": record.seal,
        "unit": record.unit,
        "shard": record.shard,
        "attempt": record.attempt,
        "draw": record.draw,
        "seed": record.seed,
        "row": record.row,
        "outcome": _KNOWN_GOOD if body is not None else to_json(outcome),
        "counters": {
            "proposals": counters.proposals,
            "verifications": counters.verifications,
            "accepted": counters.accepted,
        },
    }
    where = f"{record.unit}/{record.shard:05d} draw {record.draw}"
    if fault := record_fault(value) or counters_fault(counters):
        raise BadShard(fault, where=where)
    if body is None:
        body = dumps(value["outcome"])
        # Parsing it back keeps out what a reader would refuse: numbers past 2^53, strings that are not NFC.
        loads_machine(body + b"\n", where=f"{where}#/outcome")
        if len(outcomes) >= _CACHE:
            outcomes.clear()
        outcomes[kind, outcome] = body
    head = (
        f'{{"attempt":{record.attempt},"counters":{{"accepted":{counters.accepted},"proposals":{counters.proposals},'
        f'"verifications":{counters.verifications}}},"draw":{record.draw},"outcome":'
    )
    told = b"" if record.record is None else _beside_bytes(record.outcome, record.record, beside, where)
    return (
        head.encode() + body + told + _suffix(record.row, record.seal, record.seed, record.shard, record.unit)
    )


def _beside_bytes(outcome: Outcome, entries: Entries, known: dict[Entries, bytes], where: str) -> bytes:
    data = known.get(entries)
    try:
        if fault := beside_fault(outcome, entries):
            raise BadShard(fault)
        if data is None:
            data = KEY + entries_bytes(entries)
    except BadShard as fault:
        raise BadShard(fault.what, where=where) from None
    if len(known) >= _CACHE:
        known.clear()
    known[entries] = data
    return data


_KNOWN_GOOD = {"crash": "-"}
"""Stands for an outcome that was checked before."""


def read_shard(
    gz: bytes,
    meta: ShardMeta,
    shard: Shard,
    *,
    seal: str,
    drafter: bool,
    where: str,
    beside: bool = False,
    attempt: int = 1,
) -> list[Record]:
    """The records of one shard in one attempt, each authenticated against the plan.

    `meta` must have passed `check_meta`; `drafter` says whether the unit's counters may be above 0, `beside`
    whether each line has what the engine returned beside the tokens (none has it otherwise). Raises BadShard,
    with the line and the field, for the first fault.
    """
    lines = unpack(gz, meta, where)
    return read_lines(lines, shard, seal=seal, drafter=drafter, where=where, beside=beside, attempt=attempt)


def read_lines(
    lines: bytes,
    shard: Shard,
    *,
    seal: str,
    drafter: bool,
    where: str,
    beside: bool = False,
    attempt: int = 1,
) -> list[Record]:
    """The records of these lines, as `read_shard` authenticates them."""
    prefix_end = _line(attempt).match
    outcomes: dict[bytes, Outcome] = {}
    told: dict[bytes, Entries] = {}
    entries: Entries | None = None
    counts: dict[tuple[int, int, int], Counters] = {}
    found: list[Record] = []
    unit, index, rows, name = shard.unit.id, shard.index, shard.rows, "/".join(where.split("/")[-2:])
    draw = shard.first_draw
    at = 0
    for seed_number in range(shard.first_seed, shard.first_seed + shard.requests):
        seed = str(seed_number)
        for row in range(rows):
            end = lines.find(b"\n", at) + 1
            if not end:
                raise BadShard(f"ends before draw {draw}", where=where)
            suffix = _suffix(row, seal, seed, index, unit)
            match = prefix_end(lines, at, end)
            if match is None or not lines.endswith(suffix, match.end(), end) or int(match[4]) != draw:
                _explain(lines[at:end], shard, seal, attempt, draw, seed, row, f"{name}:{len(found) + 1}")
            body = lines[match.end() : end - len(suffix)]
            cut = body.find(KEY)
            if (cut >= 0) != beside:
                what = "is missing" if beside else "is there, and the protocol records nothing of the kind"
                _at(name, len(found), "record", what)
            if beside:
                body, data = body[:cut], body[cut + len(KEY) :]
                entries = told.get(data)
                if entries is None:
                    entries = _entries(data, f"{name}:{len(found) + 1}#/record")
                    if len(told) >= _CACHE:
                        told.clear()
                    told[data] = entries
            outcome = outcomes.get(body)
            if outcome is None:
                outcome = _outcome(body, f"{name}:{len(found) + 1}#/outcome")
                if len(outcomes) >= _CACHE:
                    outcomes.clear()
                outcomes[body] = outcome
            if entries is not None and (fault := beside_fault(outcome, entries)):
                _at(name, len(found), "record", fault)
            numbers = (int(match[1]), int(match[2]), int(match[3]))
            counters = counts.get(numbers)
            if counters is None:
                if max(numbers) > MAX_SAFE:
                    _at(name, len(found), "counters", "a counter is past 2^53 - 1")
                if any(numbers) and not drafter:
                    _at(name, len(found), "counters", "counts proposals in an arm without a drafter")
                counters = Counters(accepted=numbers[0], proposals=numbers[1], verifications=numbers[2])
                if fault := counters_fault(counters):
                    _at(name, len(found), "counters", fault)
                counts[numbers] = counters
            found.append(
                Record(
                    seal=seal,
                    unit=unit,
                    shard=index,
                    attempt=attempt,
                    draw=draw,
                    seed=seed,
                    row=row,
                    outcome=outcome,
                    counters=counters,
                    record=entries,
                )
            )
            draw += 1
            at = end
    if at != len(lines):
        raise BadShard(f"has lines after draw {draw - 1}, its last", where=where)
    return found


def has_drafter(protocol: Protocol, unit: Unit) -> bool:
    """Whether a unit's counters may be above 0: its arm speculates and its configuration has a drafter."""
    arm = next(a for a in protocol.arms if a.id == unit.arm)
    return arm.speculation and protocol.configuration(unit.configuration).drafter is not None


def record_fault(value: object) -> str | None:
    """What the record schema has against a parsed value, or None: schemas/v1/record.schema.json by hand."""
    if not isinstance(value, dict) or value.keys() - {"record"} != _FIELDS:
        return f"is no object with exactly the fields {', '.join(sorted(_FIELDS))}"
    for field, pattern in (("seal", _DIGEST), ("unit", _UNIT), ("seed", _SEED)):
        text = value[field]
        if not isinstance(text, str) or not pattern.fullmatch(text):
            return f"{field} is not of its form"
    for field in ("shard", "draw", "row"):
        if not is_count(value[field]):
            return f"{field} is not a count"
    if not is_attempt(value["attempt"]):
        return "attempt is not one of 1 to 9"
    counters = value["counters"]
    if not isinstance(counters, dict) or counters.keys() != _COUNTERS:
        return "counters are not accepted, proposals and verifications"
    if not all(is_count(n) for n in counters.values()):
        return "a counter is not a count"
    if "record" in value and (fault := entries_fault(value["record"])):
        return fault
    return outcome_fault(value["outcome"])


def counters_fault(counters: Counters) -> str | None:
    """What one draw's counters have against each other, or None."""
    if counters.verifications > counters.proposals:
        return "counts more verifications than proposals"
    if counters.accepted > counters.proposals:
        return "accepts more tokens than were proposed"
    return None


_FIELDS = {"seal", "unit", "shard", "attempt", "draw", "seed", "row", "outcome", "counters"}
_COUNTERS = {"accepted", "proposals", "verifications"}


def outcome_fault(value: object) -> str | None:
    """What the schema has against an outcome, or None."""
    if not isinstance(value, dict):
        return "outcome is no object"
    if value.keys() == {"tokens", "finish"}:
        tokens, finish = value["tokens"], value["finish"]
        if not isinstance(tokens, list) or len(tokens) > 100_000 or not all(map(is_count, tokens)):
            return "tokens are not a list of at most 100000 token ids"
        if finish is not None and not (isinstance(finish, str) and len(finish) <= 200):
            return "finish is neither null nor a string of at most 200 characters"
        return None
    if value.keys() == {"crash"}:
        crash = value["crash"]
        ok = isinstance(crash, str) and 1 <= len(crash) <= 200
        return None if ok else "crash is not a string of 1 to 200 characters"
    if value.keys() == {"value"}:
        inner = value["value"]
        ok = isinstance(inner, int | float) or (isinstance(inner, str) and len(inner) <= 2000)
        return None if ok else "value is neither a number, a boolean nor a string of at most 2000 characters"
    return "outcome is neither tokens with finish, nor a crash, nor a value"


def is_count(value: object) -> bool:
    """Whether a parsed JSON value is a nonnegative integer."""
    return type(value) is int and value >= 0


def is_attempt(value: object) -> bool:
    """Whether a parsed JSON value is the number of an attempt."""
    return type(value) is int and 1 <= value <= 9


def _outcome(body: bytes, where: str) -> Outcome:
    try:
        value = loads_machine(body + b"\n", where=where)
    except MalformedJson as error:
        raise BadShard(error.what, where=where) from None
    if fault := outcome_fault(value):
        raise BadShard(fault, where=where)
    assert isinstance(value, dict)
    return outcome_from(value)


def _entries(data: bytes, where: str) -> Entries:
    try:
        return entries_of(data)
    except BadShard as error:
        raise BadShard(error.what, where=where) from None


def _suffix(row: int, seal: str, seed: str, shard: int, unit: str) -> bytes:
    return f',"row":{row},"seal":"{seal}","seed":"{seed}","shard":{shard},"unit":"{unit}"}}\n'.encode()


def _explain(
    line: bytes, shard: Shard, seal: str, attempt: int, draw: int, seed: str, row: int, where: str
) -> NoReturn:
    """Say what is wrong with a line that is not what the plan asks for."""
    try:
        value = loads_machine(line, where=where)
    except MalformedJson as error:
        raise BadShard(error.what, where=where) from None
    if fault := record_fault(value):
        raise BadShard(fault, where=where)
    assert isinstance(value, dict)
    expected: Sequence[tuple[str, object]] = (
        ("seal", seal),
        ("unit", shard.unit.id),
        ("shard", shard.index),
        ("attempt", attempt),
        ("draw", draw),
        ("seed", seed),
        ("row", row),
    )
    for field, wanted in expected:
        if value[field] != wanted:
            raise BadShard(
                f"is {value[field]!r:.80}; the plan says {wanted!r:.80}", where=f"{where}#/{field}"
            )
    raise BadShard("is not the canonical line of this draw", where=where)


def _at(name: str, index: int, field: str, what: str) -> NoReturn:
    raise BadShard(what, where=f"{name}:{index + 1}#/{field}")
