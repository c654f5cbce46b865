"""Shards whose draws have what the engine returned beside the tokens (docs/formats.md section 7)."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from test_seal_records import LINES, SEAL, SHARD, meta_of, packed, records

from prereg.codec.canonical import dump_file, dumps
from prereg.codec.convert import to_json
from prereg.model.law import Crashed, Decoded, RecordEntry, Valued
from prereg.model.record import Record
from prereg.seal.packing import BadShard
from prereg.seal.records import encode_shard, read_shard
from tests.unit.seal_kit import record_line

ENTRIES = (
    RecordEntry(tokens=(0, 3, 7), values=(-0.5, "-inf", 2)),
    RecordEntry(tokens=(), values=()),
    RecordEntry(tokens=(1,), values=("nan",)),
)


def told() -> list[Record]:
    """The records of the other tests, each with entries; the crash has none. A value becomes tokens."""
    return [
        dataclasses.replace(
            r,
            outcome=Decoded(tokens=(i,), finish=FINISH) if isinstance(r.outcome, Valued) else r.outcome,
            record=() if isinstance(r.outcome, Crashed) else ENTRIES[: i % 4],
        )
        for i, r in enumerate(records())
    ]


FINISH = ',"record":[] \\ "'
"""A text that looks like what parts an outcome from its record."""


def read(lines: bytes, *, beside: bool = True) -> list[Record]:
    gz, meta = packed(lines)
    where = "records/main.c.on/00002.jsonl.gz"
    return read_shard(gz, meta, SHARD, seal=SEAL, drafter=False, where=where, beside=beside)


TOLD = b"".join(map(record_line, told()))


def test_they_come_back_as_they_were() -> None:
    encoded = encode_shard(told())
    assert gzip.decompress(encoded.data) == TOLD
    found = read_shard(
        encoded.data, meta_of(encoded), SHARD, seal=SEAL, drafter=False, where="x/y", beside=True
    )
    assert found == told()


def test_lines_are_canonical_json() -> None:
    for record, line in zip(told(), TOLD.splitlines(keepends=True), strict=True):
        assert line == dump_file(to_json(record))


@pytest.mark.parametrize(
    ("lines", "beside", "message"),
    [(LINES, True, "#/record: is missing"), (TOLD, False, "#/record: is there, and the protocol")],
    ids=["missing", "not asked for"],
)
def test_they_are_there_exactly_where_the_protocol_says(lines: bytes, beside: bool, message: str) -> None:
    with pytest.raises(BadShard, match=message):
        read(lines, beside=beside)


def test_one_draw_without_is_found() -> None:
    mixed = [told()[0], *records()[1:2], *told()[2:]]
    with pytest.raises(BadShard, match=r"00002.jsonl.gz:2#/record: is missing"):
        read(b"".join(map(record_line, mixed)))


def changed(change: Callable[[list[Any]], None], draw: int = 3) -> bytes:
    """The lines with the record of one draw changed."""
    lines = TOLD.splitlines(keepends=True)
    value = json.loads(lines[draw])
    change(value["record"])
    lines[draw] = dumps(value) + b"\n"
    return b"".join(lines)


FAULTS: dict[str, tuple[Callable[[list[Any]], None], str]] = {
    "fewer values": (lambda e: e[0]["values"].pop(), "not as many values as tokens"),
    "descending tokens": (lambda e: e[0]["tokens"].reverse(), "not ascending"),
    "a token twice": (lambda e: e[0].update(tokens=[0, 0, 7]), "not ascending"),
    "another word": (lambda e: e[0].update(values=["-Inf", 0, 0]), "not a list of at most 100000 numbers"),
    "a truth value": (lambda e: e[0].update(values=[True, 0, 0]), "not a list of at most 100000 numbers"),
    "no token": (lambda e: e[0].update(tokens=[-1, 0, 1]), "token ids"),
    "another key": (lambda e: e[0].update(more=1), "not tokens and values"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_not_of_the_form_is_refused(name: str) -> None:
    change, message = FAULTS[name]
    with pytest.raises(BadShard, match=rf"00002.jsonl.gz:4#/record: .*{message}"):
        read(changed(change))


def test_a_crash_has_none() -> None:
    with pytest.raises(BadShard, match=r":3#/record: a crash has an entry"):
        read(changed(lambda e: e.append({"tokens": [], "values": []}), draw=2))
    with pytest.raises(BadShard, match="draw 10: a crash has an entry"):
        record_line(dataclasses.replace(told()[2], record=ENTRIES[:1]))


def test_a_value_has_none_beside_it() -> None:
    value = b'"outcome":{"value":true},"record":[]'
    with pytest.raises(BadShard, match=r":2#/record: a value has a record"):
        read(TOLD.replace(b'"outcome":{"finish":null,"tokens":[]},"record":' + told_bytes(1), value, 1))
    with pytest.raises(BadShard, match="draw 13: a value has a record"):
        record_line(dataclasses.replace(records()[5], record=()))


def told_bytes(draw: int) -> bytes:
    return dumps(json.loads(TOLD.splitlines()[draw])["record"])


def test_text_behind_a_record_is_refused() -> None:
    with pytest.raises(BadShard, match="#/record"):
        read(TOLD.replace(b'"values":["nan"]}],"row', b'"values":["nan"]}] ,"row', 1))


@pytest.mark.parametrize(
    "entry",
    [
        RecordEntry(tokens=(0,), values=(float("nan"),)),
        RecordEntry(tokens=(0,), values=(float("inf"),)),
        RecordEntry(tokens=(0, 1), values=(0.5,)),
        RecordEntry(tokens=(1, 0), values=(0.5, 0.5)),
        RecordEntry(tokens=(0,), values=(2**60,)),
    ],
    ids=["nan", "inf", "lengths", "order", "large"],
)
def test_what_no_reader_lets_through_is_not_written(entry: RecordEntry) -> None:
    with pytest.raises(BadShard):
        record_line(dataclasses.replace(told()[0], record=(entry,)))
