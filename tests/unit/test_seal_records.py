"""Shards: the same bytes for the same records, and no record that the plan does not ask for."""

from __future__ import annotations

import dataclasses
import gzip
import json
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from prereg.codec.canonical import MalformedJson, digest, dump_file
from prereg.codec.convert import to_json
from prereg.model.law import Crashed, Decoded, Outcome, Valued
from prereg.model.plan import Shard
from prereg.model.record import Counters, Record, ShardMeta
from prereg.model.study import Unit
from prereg.seal.metas import check_meta, check_stored, check_times, read_meta
from prereg.seal.packing import BadShard, Encoded
from prereg.seal.records import encode_shard, read_shard
from tests.unit.seal_kit import record_line

SEAL = "a" * 64
UNIT = Unit(stage="main", configuration="c", arm="on")
SHARD = Shard(unit=UNIT, index=2, first_request=4, requests=3, rows=2, first_seed=104)
ZERO = Counters(proposals=0, verifications=0, accepted=0)
OUTCOMES: list[Outcome] = [
    Decoded(tokens=(1, 0, 7), finish="stop"),
    Decoded(tokens=(), finish=None),
    Crashed(crash="ValueError"),
    Valued(value='ü "quoted" \\ \n\x1f\x7f\u2028'),
    Valued(value=0.1),
    Valued(value=True),
]


def records(shard: Shard = SHARD, counters: Counters = ZERO) -> list[Record]:
    return [
        Record(
            seal=SEAL,
            unit=shard.unit.id,
            shard=shard.index,
            attempt=1,
            draw=shard.first_draw + i,
            seed=str(shard.first_seed + i // shard.rows),
            row=i % shard.rows,
            outcome=OUTCOMES[i % len(OUTCOMES)],
            counters=counters,
        )
        for i in range(shard.draws)
    ]


def meta_of(encoded: Encoded, shard: Shard = SHARD) -> ShardMeta:
    return ShardMeta(
        study="s",
        seal=SEAL,
        unit=shard.unit.id,
        shard=shard.index,
        attempt=1,
        first_seed=str(shard.first_seed),
        requests=shard.requests,
        rows=shard.rows,
        draws=shard.draws,
        records_sha256=encoded.records_sha256,
        records_size=encoded.records_size,
        lines_sha256=encoded.lines_sha256,
        lines_size=encoded.lines_size,
        environment="e" * 64,
        network="cut",
        started="2026-03-01T12:00:00+00:00",
        ended="2026-03-01T12:00:00+00:00",
    )


def read(gz: bytes, meta: ShardMeta, *, drafter: bool = False) -> list[Record]:
    where = "records/main.c.on/00002.jsonl.gz"
    return read_shard(gz, meta, SHARD, seal=SEAL, drafter=drafter, where=where)


def packed(lines: bytes) -> tuple[bytes, ShardMeta]:
    """Any lines as a shard whose gzip and meta are sound."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    gz = packer.compress(lines) + packer.flush()
    encoded = Encoded(
        data=gz,
        records_sha256=digest(gz),
        records_size=len(gz),
        lines_sha256=digest(lines),
        lines_size=len(lines),
    )
    return gz, meta_of(encoded)


LINES = b"".join(map(record_line, records()))


def test_records_come_back_as_they_were() -> None:
    encoded = encode_shard(records())
    assert gzip.decompress(encoded.data) == LINES
    assert read(encoded.data, meta_of(encoded)) == records()


def test_lines_are_canonical_json() -> None:
    for record, line in zip(records(), LINES.splitlines(keepends=True), strict=True):
        assert line == dump_file(to_json(record))


def test_the_same_records_give_the_same_bytes() -> None:
    first, second = encode_shard(records()), encode_shard(iter(records()))
    assert first == second
    assert first.data[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    assert first.records_sha256 == digest(first.data)


def test_equal_values_of_other_types_keep_their_own_bytes() -> None:
    values = [1, True, 1.0, 0, False, -0.0]
    draws = [dataclasses.replace(r, outcome=Valued(value=v)) for r, v in zip(records(), values, strict=True)]
    lines = gzip.decompress(encode_shard(draws).data).splitlines()
    assert [json.dumps(json.loads(line)["outcome"]["value"]) for line in lines] == [
        *("1", "true", "1", "0", "false", "0")
    ]


@pytest.mark.parametrize(
    "outcome",
    [
        Valued(value=float("nan")),
        Valued(value=float("inf")),
        Valued(value=2**53),
        Valued(value=1e300),
        Valued(value="e\u0301"),
        Valued(value="\ud800"),
        Valued(value="x" * 2001),
        Crashed(crash=""),
        Crashed(crash="x" * 201),
        Decoded(tokens=(-1,), finish=None),
        Decoded(tokens=(True,), finish=None),
        Decoded(tokens=(1,), finish="x" * 201),
    ],
)
def test_what_a_reader_would_refuse_is_not_written(outcome: Outcome) -> None:
    record = dataclasses.replace(records()[0], outcome=outcome)
    with pytest.raises((BadShard, MalformedJson)):
        encode_shard([record])


def test_counters_need_a_drafter() -> None:
    encoded = encode_shard(records(counters=Counters(proposals=3, verifications=2, accepted=1)))
    (first, *_) = read(encoded.data, meta_of(encoded), drafter=True)
    assert first.counters == Counters(proposals=3, verifications=2, accepted=1)
    with pytest.raises(BadShard, match="without a drafter") as caught:
        read(encoded.data, meta_of(encoded))
    assert caught.value.where == "main.c.on/00002.jsonl.gz:1#/counters"


@pytest.mark.parametrize(
    ("counters", "what"),
    [
        (Counters(proposals=2, verifications=3, accepted=1), "more verifications than proposals"),
        (Counters(proposals=2, verifications=1, accepted=3), "more tokens than were proposed"),
    ],
)
def test_counters_agree_with_each_other(counters: Counters, what: str) -> None:
    with pytest.raises(BadShard, match=what):
        record_line(dataclasses.replace(records()[0], counters=counters))
    sound = Counters(proposals=2, verifications=2, accepted=2)
    lines = b"".join(map(record_line, records(counters=sound)))
    good, meta = packed(lines)
    assert read(good, meta, drafter=True)[1].counters == sound
    old = b'"accepted":2,"proposals":2,"verifications":2'
    new = b'"accepted":%d,"proposals":%d,"verifications":%d'
    numbers = (counters.accepted, counters.proposals, counters.verifications)
    gz, meta = packed(lines.replace(old, new % numbers, 2).replace(new % numbers, old, 1))
    with pytest.raises(BadShard, match=what) as caught:
        read(gz, meta, drafter=True)
    assert caught.value.where == "main.c.on/00002.jsonl.gz:2#/counters"


def line_with(n: int, **changes: Any) -> bytes:
    value = json.loads(LINES.splitlines()[n])
    value.update(changes)
    return swap(n, dump_file(value))


def swap(n: int, line: bytes) -> bytes:
    lines = LINES.splitlines(keepends=True)
    lines[n] = line
    return b"".join(lines)


SPLIT = LINES.splitlines(keepends=True)
BAD_LINES = [
    ("seal", line_with(1, seal="b" * 64), ":2#/seal", "the plan says"),
    ("unit", line_with(1, unit="main.c.off"), ":2#/unit", "the plan says"),
    ("shard", line_with(1, shard=3), ":2#/shard", "the plan says"),
    ("draw", line_with(1, draw=8), ":2#/draw", "the plan says"),
    ("seed", line_with(1, seed="105"), ":2#/seed", "the plan says"),
    ("row", line_with(1, row=0), ":2#/row", "the plan says"),
    ("attempt", line_with(1, attempt=2), ":2#/attempt", "is 2; the plan says 1"),
    ("attempt true", line_with(1, attempt=True), ":2", "attempt is not one of 1 to 9"),
    ("a field more", line_with(1, more=1), ":2", "exactly the fields"),
    ("outcome of two kinds", line_with(1, outcome={"crash": "X", "value": 1}), ":2#/outcome", "neither to"),
    ("outcome null", line_with(1, outcome=None), ":2#/outcome", "no object"),
    ("token text", line_with(1, outcome={"tokens": ["1"], "finish": None}), ":2#/outcome", "token ids"),
    ("no finish", line_with(1, outcome={"tokens": [1]}), ":2#/outcome", "neither tokens"),
    ("value list", line_with(1, outcome={"value": []}), ":2#/outcome", "value is neither"),
    ("counter negative", line_with(1, counters={"proposals": -1, "verifications": 0, "accepted": 0}), ":2",
     "not a count"),
    ("counter missing", line_with(1, counters={"proposals": 0, "accepted": 0}), ":2", "counters are not"),
    ("counter huge", swap(1, SPLIT[1].replace(b'"accepted":0', b'"accepted":9007199254740992')),
     ":2#/counters", "2\\^53"),
    ("space", swap(1, SPLIT[1].replace(b'"draw":9', b'"draw": 9')), ":2", "canonical"),
    ("CRLF", swap(1, SPLIT[1][:-1] + b"\r\n"), ":2", "CRLF"),
    ("a key twice", swap(1, SPLIT[1].replace(b'"row":1', b'"row":1,"row":1')), ":2#/outcome", "not JSON"),
    ("a key twice in the outcome",
     swap(1, SPLIT[1].replace(b'{"finish":null', b'{"finish":null,"finish":null')),
     ":2#/outcome", "stands twice"),
    ("NaN", swap(4, SPLIT[4].replace(b"0.1", b"NaN")), ":5#/outcome", "NaN"),
    ("number written otherwise", swap(4, SPLIT[4].replace(b"0.1", b"0.10")), ":5#/outcome", "canonical"),
    ("not NFC", swap(3, SPLIT[3].replace("ü".encode(), "u\u0308".encode())), ":4#/outcome", "NFC"),
    ("not UTF-8", swap(3, SPLIT[3].replace("ü".encode(), b"\xff")), ":4#/outcome", "UTF-8"),
    ("empty line", swap(1, b"\n"), ":2", "not JSON"),
    ("draw repeated", LINES + SPLIT[-1], "", "after draw 13"),
    ("draw missing", b"".join(SPLIT[:-1]), "", "ends before draw 13"),
    ("draw missing inside", b"".join([SPLIT[0], *SPLIT[2:]]), ":2#/draw", "the plan says 9"),
    ("order", b"".join([SPLIT[1], SPLIT[0], *SPLIT[2:]]), ":1#/draw", "the plan says 8"),
    ("no last newline", LINES[:-1], "", "ends before draw 13"),
    ("empty", b"", "", "ends before draw 8"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "place", "what"), [r[1:] for r in BAD_LINES], ids=[r[0] for r in BAD_LINES]
)
def test_a_line_that_the_plan_does_not_ask_for_is_refused(lines: bytes, place: str, what: str) -> None:
    gz, meta = packed(lines)
    with pytest.raises(BadShard, match=what) as caught:
        read(gz, meta)
    assert caught.value.where is not None
    assert caught.value.where.endswith(f"main.c.on/00002.jsonl.gz{place}")


def regz(lines: bytes, **arguments: Any) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31, **arguments)
    return packer.compress(lines) + packer.flush()


BAD_GZIP: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("not gzip", lambda g: b"PK" + g, "not gzip"),
    ("mtime", lambda g: g[:4] + b"\1\0\0\0" + g[8:], "not gzip with mtime 0"),
    ("a name", lambda g: g[:3] + b"\x08" + g[4:10] + b"n\0" + g[10:], "no name"),
    ("cut", lambda g: g[:-9], "does not hold"),
    ("checksum", lambda g: g[:-8] + b"\0\0\0\0" + g[-4:], "not gzip"),
    ("bytes after", lambda g: g + b"x", "after its one gzip member"),
    ("a second member", lambda g: g + regz(b""), "after its one gzip member"),
    ("a bomb", lambda g: regz(b"\0" * 50_000_000), "does not hold"),
    ("other lines", lambda g: regz(LINES.replace(b"ValueError", b"ValueErrox")), "another digest"),
    ("empty", lambda g: b"", "not gzip"),
]


@pytest.mark.parametrize(("make", "what"), [r[1:] for r in BAD_GZIP], ids=[r[0] for r in BAD_GZIP])
def test_gzip_of_another_form_is_refused(make: Callable[[bytes], bytes], what: str) -> None:
    encoded = encode_shard(records())
    with pytest.raises(BadShard, match=what):
        read(make(encoded.data), meta_of(encoded))


def test_a_claim_of_endless_lines_is_not_followed() -> None:
    encoded = encode_shard(records())
    with pytest.raises(BadShard, match="are allowed"):
        read(encoded.data, dataclasses.replace(meta_of(encoded), lines_size=2**40))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("study", "t"),
        ("seal", "b" * 64),
        ("unit", "main.c.off"),
        ("shard", 3),
        ("first_seed", "105"),
        ("requests", 4),
        ("rows", 1),
        ("draws", 7),
        ("environment", "f" * 64),
    ],
)
def test_every_planned_field_of_a_meta_counts(field: str, value: object) -> None:
    meta = meta_of(encode_shard(records()))
    expected = {"study": "s", "seal": SEAL, "environment": "e" * 64, "where": "m"}
    check_meta(meta, SHARD, **expected)
    with pytest.raises(BadShard) as caught:
        check_meta(dataclasses.replace(meta, **{field: value}), SHARD, **expected)
    assert caught.value.where == f"m#/{field}"


@pytest.mark.parametrize("field", ["started", "ended"])
@pytest.mark.parametrize("text", ["2026-02-30T12:00:00+00:00", "2026-03-01T24:00:01+00:00"])
def test_a_meta_of_a_time_that_no_calendar_has(field: str, text: str) -> None:
    meta = dataclasses.replace(meta_of(encode_shard(records())), **{field: text})  # type: ignore[arg-type]
    with pytest.raises(BadShard, match="no such time") as caught:
        read_meta(dump_file(to_json(meta)), where="m")
    assert caught.value.where == f"m#/{field}"


@pytest.mark.parametrize(
    ("started", "ended", "field"),
    [(10, 10, None), (10, 11, None), (10, 9, "ended"), (9, 11, "started")],
)
def test_a_shard_is_drawn_after_its_seal_and_in_a_time_that_goes_forward(
    started: int, ended: int, field: str | None
) -> None:
    sealed = datetime(2026, 3, 1, 12, 0, 10, tzinfo=UTC)
    times = {"started": f"2026-03-01T12:00:{started:02}+00:00", "ended": f"2026-03-01T12:00:{ended:02}+00:00"}
    meta = dataclasses.replace(meta_of(encode_shard(records())), **times)  # type: ignore[arg-type]
    if field is None:
        check_times(meta, sealed, where="m")
        return
    with pytest.raises(BadShard, match="is before") as caught:
        check_times(meta, sealed, where="m")
    assert caught.value.where == f"m#/{field}"


def test_the_ledger_and_the_meta_bind_both_files() -> None:
    encoded = encode_shard(records())
    meta = meta_of(encoded)
    data = dump_file(to_json(meta))
    assert read_meta(data, where="m") == meta
    body = {
        "records_sha256": encoded.records_sha256,
        "records_size": encoded.records_size,
        "meta_sha256": digest(data),
        "draws": 6,
    }

    def check(body: dict[str, Any], gz: bytes = encoded.data, meta: ShardMeta = meta) -> None:
        check_stored(gz, data, meta, body, where="g", meta_where="m")

    check(body)
    for field, value in (
        ("records_sha256", "0" * 64),
        ("records_size", 1),
        ("meta_sha256", "0" * 64),
        ("draws", 5),
    ):
        with pytest.raises(BadShard):
            check({**body, field: value})
    with pytest.raises(BadShard):
        check(body, gz=encoded.data + b"x")
    with pytest.raises(BadShard, match="its meta's"):
        check(body, meta=dataclasses.replace(meta, records_size=1))


def test_reading_is_fast_enough_for_whole_studies() -> None:
    shard = dataclasses.replace(SHARD, requests=20_000, rows=2)
    encoded = encode_shard(
        dataclasses.replace(r, outcome=Decoded(tokens=(i % 7, i % 5, i % 3), finish=None))
        for i, r in enumerate(records(shard))
    )
    meta = meta_of(encoded, shard)
    start = time.process_time()
    found = read_shard(encoded.data, meta, shard, seal=SEAL, drafter=False, where="x/y")
    seconds = time.process_time() - start
    assert len(found) == 40_000
    assert len(found) / seconds > 50_000
