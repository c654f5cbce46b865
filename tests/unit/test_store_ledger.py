"""The ledger's chain: what appending writes, and what reading refuses."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest, dump_file, value_digest
from prereg.errors import EvidenceIncomplete, UsageError, VerificationFailed
from prereg.model.places import state
from prereg.model.seal import EntryType
from prereg.store.layout import StudyPaths
from prereg.store.ledger import (
    START,
    LedgerFault,
    LedgerWriter,
    TornTail,
    append,
    head_of,
    line_of,
    mend,
    read_ledger,
    repair,
    timestamp,
)

SEAL = "a" * 64
T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BODIES: dict[str, dict[str, Any]] = {
    "sealed": {"seal": SEAL, "signature_sha256": "b" * 64, "commit": None},
    "collection-started": {
        "seal": SEAL,
        "attempt": 1,
        "environments": {"plain": "c" * 64},
        "workers": 1,
        "network": "cut",
        "network_reason": None,
    },
    "shard-stored": {
        "unit": "main.a.off",
        "shard": 0,
        "attempt": 1,
        "records_sha256": "d" * 64,
        "records_size": 1,
        "meta_sha256": "e" * 64,
        "draws": 1,
    },
    "unit-invalid": {"unit": "main.a.on", "attempt": 1, "reason": "ceiling"},
    "collection-ended": {"seal": SEAL, "complete": True, "stored": 1, "invalid": ["main.a.on"]},
    "analysis": {"seal": SEAL, "decisions_sha256": "f" * 64},
    "audit": {"seal": SEAL, "report_sha256": "1" * 64, "signature_sha256": "2" * 64, "result": "AGREES"},
}
TYPES = tuple(BODIES)


def chain(*types: str, start: datetime = T0) -> bytes:
    """A sound chain of entries of those types, a second apart."""
    data = b""
    for i, kind in enumerate(types):
        prev = head_of(data) if data else START
        moment = timestamp(start + timedelta(seconds=i))
        data += line_of(i + 1, moment, kind, "ada", BODIES[kind], prev)  # type: ignore[arg-type]
    return data


def relink(lines: list[bytes]) -> bytes:
    """Make the sequence numbers and `prev` of altered lines agree again."""
    data = b""
    for i, line in enumerate(lines):
        value = json.loads(line)
        value |= {"seq": i + 1, "prev": head_of(data) if data else START}
        data += dump_file(value)
    return data


FULL = chain(*TYPES)
LINES = FULL.splitlines(keepends=True)


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    root = tmp_path / "repo" / "studies" / "s"
    root.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    return StudyPaths(root=root)


def test_a_sound_chain_is_read_back() -> None:
    entries = read_ledger(FULL)
    assert [e.type for e in entries] == list(TYPES)
    assert [e.seq for e in entries] == list(range(1, 8))
    assert head_of(FULL) == digest(LINES[-1])
    assert entries[3].prev == digest(LINES[2])
    assert entries[2].body_sha256 == value_digest(BODIES["shard-stored"])


@pytest.mark.parametrize(
    ("length", "expected"),
    list(enumerate(["draft", "sealed", *["collecting"] * 3, "collected", "analysed", "audited"])),
)
def test_the_state_follows_from_the_last_entry(length: int, expected: str) -> None:
    entries = read_ledger(b"".join(LINES[:length])) if length else ()
    assert state(entries) == expected


def test_an_incomplete_end_leaves_the_study_collecting() -> None:
    data = chain("sealed", "collection-started")
    body = {"seal": SEAL, "complete": False, "stored": 0, "invalid": []}
    data += line_of(3, timestamp(T0 + timedelta(hours=1)), "collection-ended", "ada", body, head_of(data))
    assert state(read_ledger(data)) == "collecting"


def edited(n: int, change: Callable[[dict[str, Any]], Any], *, chain_on: bool = False) -> bytes:
    """The full chain with entry `n` changed; with `chain_on` the later lines are made to follow it."""
    value = json.loads(LINES[n - 1])
    change(value)
    lines = [*LINES[: n - 1], dump_file(value), *LINES[n:]]
    return relink(lines) if chain_on else b"".join(lines)


def set_(name: str, to: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda value: value.__setitem__(name, to)


def body_(name: str, to: Any) -> Callable[[dict[str, Any]], Any]:
    """Change the body and its digest with it."""

    def change(value: dict[str, Any]) -> None:
        value["body"][name] = to
        value["body_sha256"] = value_digest(value["body"])

    return change


ROWS = [
    ("empty", b"", ":?", "is empty"),
    ("drop the middle", b"".join([*LINES[:3], *LINES[4:]]), ":4#/seq", "has seq 5, not 4"),
    ("drop the middle, renumbered", edited(4, set_("seq", 4)).replace(LINES[2], b""), ":3#/seq", "has seq 4"),
    ("drop the first", b"".join(LINES[1:]), ":1#/seq", "has seq 2, not 1"),
    ("drop the first, chained on", relink(LINES[1:]), ":1#/type", "not with sealed"),
    ("reorder", b"".join([*LINES[:2], LINES[3], LINES[2], *LINES[4:]]), ":3#/seq", "has seq 4, not 3"),
    ("reorder, chained on", relink([*LINES[:2], LINES[3], LINES[2], *LINES[4:]]), ":4#/time", "before that"),
    ("duplicate", b"".join([*LINES[:3], LINES[2], *LINES[3:]]), ":4#/seq", "has seq 3, not 4"),
    ("cut in a line", FULL[:-10], ":7", "no newline"),
    ("cut the last newline", FULL[:-1], ":7", "no newline"),
    ("edit an actor", edited(3, set_("actor", "eve")), ":4#/prev", "prev is not"),
    ("edit a body", edited(3, lambda v: v["body"].__setitem__("draws", 2)), ":3#/body_sha256", "body_sha256"),
    ("edit a body and its digest", edited(3, body_("draws", 2)), ":4#/prev", "prev is not"),
    ("edit the last prev", edited(7, set_("prev", "0" * 64)), ":7#/prev", "prev is not"),
    ("first prev is not zeros", edited(1, set_("prev", "1" * 64)), ":1#/prev", "prev is not"),
    ("a key too many", edited(3, set_("more", 1)), ":3#", "Additional properties"),
    ("an unknown type", edited(3, set_("type", "withdrawn")), ":3#/type", "is no ledger entry"),
    ("a type that is a list", edited(3, set_("type", ["sealed"])), ":3#/type", "is no ledger entry"),
    ("a body of another type", edited(3, set_("type", "analysis")), ":3#/body", "required|Additional"),
    ("a time that does not exist", edited(2, set_("time", "2026-13-01T00:00:00+00:00")), ":2#/time", "exist"),
    ("a time without offset", edited(2, set_("time", "2026-03-01T00:00:00Z")), ":2#/time", "does not match"),
    (
        "a time that goes back",
        edited(4, set_("time", "2026-02-01T00:00:00+00:00"), chain_on=True),
        ":4#/time",
        "is before that of the line before",
    ),
    ("a second seal", relink([*LINES[:1], *LINES]), ":2#/type", "a second entry 'sealed'"),
    ("data after a complete end",
     chain("sealed", "collection-started", "collection-ended", "collection-started"),
     ":4#/type", "after the collection was complete"),
    ("invalid after a complete end and an analysis",
     chain("sealed", "collection-started", "collection-ended", "analysis", "unit-invalid"),
     ":5#/type", "an entry 'unit-invalid' after an analysis"),
    ("a shard outside a collection", chain("sealed", "shard-stored"), ":2#/type", "outside a collection"),
    ("not canonical", FULL.replace(b'"seq":3', b'"seq": 3'), ":3", "not in canonical form"),
    ("CRLF", FULL.replace(b"\n", b"\r\n"), ":1", "CRLF"),
    ("a duplicate key", FULL.replace(b'"seq":3', b'"seq":3,"seq":3'), ":3", "stands twice"),
    ("an empty line", FULL + b"\n", ":8", "not JSON"),
    ("not an object", b"[]\n", ":1#/type", "is no ledger entry"),
    ("not UTF-8", b"\xff\n", ":1", "not UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "place", "what"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_tampered_chain_is_refused_with_its_line(data: bytes, place: str, what: str) -> None:
    with pytest.raises(LedgerFault, match=what) as caught:
        read_ledger(data)
    assert caught.value.where == ("ledger.jsonl" if place == ":?" else f"ledger.jsonl{place}")
    assert caught.value.exit_code == 1


def test_append_chains_on_and_is_what_reading_sees(paths: StudyPaths) -> None:
    with LedgerWriter.open(paths, create=True) as writer:
        for kind in TYPES:
            writer.append(kind, BODIES[kind], "ada", now=T0)  # type: ignore[arg-type]
        assert writer.head == head_of(paths.ledger.read_bytes())
        assert writer.state == "audited"
    entry, note = append(paths, "analysis", BODIES["analysis"], "bob")
    assert note is None
    assert entry.seq == 8
    assert read_ledger(paths.ledger.read_bytes())[-1] == entry


def test_an_entry_is_on_the_disk_before_append_returns(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.ledger.write_bytes(FULL)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_size))
    append(paths, "analysis", BODIES["analysis"], "ada")
    assert synced == [paths.ledger.stat().st_size]


def test_a_clock_that_stands_behind_does_not_make_time_decrease(paths: StudyPaths) -> None:
    paths.ledger.write_bytes(FULL)
    entry, _ = append(paths, "analysis", BODIES["analysis"], "ada", now=T0 - timedelta(days=9))
    assert entry.time == read_ledger(FULL)[-1].time


@pytest.mark.parametrize(
    ("kind", "body"),
    [("analysis", {"seal": SEAL}), ("sealed", BODIES["sealed"]), ("shard-stored", BODIES["shard-stored"])],
)
def test_an_entry_that_reading_would_refuse_is_not_written(
    paths: StudyPaths, kind: EntryType, body: dict[str, Any]
) -> None:
    paths.ledger.write_bytes(FULL)
    with pytest.raises(LedgerFault):
        append(paths, kind, body, "ada")
    assert paths.ledger.read_bytes() == FULL


@pytest.mark.parametrize("cut", [1, 20, len(LINES[-1]) - 1])
def test_a_torn_tail_is_cut_off_and_said(paths: StudyPaths, cut: int) -> None:
    paths.ledger.write_bytes(FULL[:-cut])
    with pytest.raises(TornTail):
        read_ledger(paths.ledger.read_bytes())
    note = repair(paths)
    assert note is not None and f"{len(LINES[-1]) - cut} bytes" in note
    assert paths.ledger.read_bytes() == b"".join(LINES[:-1])
    assert repair(paths) is None


def test_mending_touches_nothing_but_a_torn_tail(paths: StudyPaths) -> None:
    mend(paths)
    assert not paths.ledger.exists()
    for data in (FULL, FULL + b"{}\n", FULL[:-5]):
        paths.ledger.write_bytes(data)
        mend(paths)
        assert paths.ledger.read_bytes() == (data if data.endswith(b"\n") else b"".join(LINES[:-1]))


def test_a_stamp_of_a_time_that_no_calendar_has() -> None:
    body = {"seal": SEAL, "request_sha256": "1" * 64, "token_sha256": "2" * 64}
    with pytest.raises(LedgerFault, match="does not exist") as caught:
        line_of(2, timestamp(T0), "timestamped", "ada", {**body, "time": "2026-02-30T12:00:00+00:00"}, SEAL)
    assert caught.value.where == "ledger.jsonl:2#/body/time"


def test_a_torn_line_that_the_head_covers_is_no_crash(paths: StudyPaths) -> None:
    torn = FULL[:-5]
    paths.ledger.write_bytes(torn)
    paths.head.write_bytes(dump_file({"seq": 7}))
    with pytest.raises(LedgerFault, match="the head names entry 7"):
        repair(paths)
    assert paths.ledger.read_bytes() == torn


def test_a_fault_before_a_torn_tail_is_not_repaired(paths: StudyPaths) -> None:
    broken = b"".join([*LINES[:3], *LINES[4:]])[:-5]
    paths.ledger.write_bytes(broken)
    with pytest.raises(LedgerFault, match="has seq 5"):
        repair(paths)
    assert paths.ledger.read_bytes() == broken


def test_a_ledger_is_not_made_by_appending(paths: StudyPaths) -> None:
    with pytest.raises(EvidenceIncomplete, match="missing"):
        append(paths, "sealed", BODIES["sealed"], "ada")
    paths.ledger.write_bytes(FULL)
    with pytest.raises(LedgerFault, match="exists already"), LedgerWriter.open(paths, create=True):
        pass


def test_a_linked_ledger_is_not_followed(paths: StudyPaths, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(FULL)
    paths.ledger.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VerificationFailed, match="plain file"):
        append(paths, "analysis", BODIES["analysis"], "ada")
    assert (tmp_path / "elsewhere").read_bytes() == FULL


def test_a_write_by_another_program_is_noticed(paths: StudyPaths) -> None:
    paths.ledger.write_bytes(FULL)
    with LedgerWriter.open(paths) as writer:
        with paths.ledger.open("ab") as handle:
            handle.write(b"x")
        with pytest.raises(LedgerFault, match="another program"):
            writer.append("analysis", BODIES["analysis"], "ada")


def _append_many(root: str, count: int) -> None:
    for _ in range(count):
        append(StudyPaths(root=Path(root)), "analysis", BODIES["analysis"], f"p{os.getpid()}")


def test_two_writers_never_interleave(paths: StudyPaths) -> None:
    paths.ledger.write_bytes(FULL)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(str(paths.root), 15)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    entries = read_ledger(paths.ledger.read_bytes())
    assert len(entries) == 7 + 30
    assert len({e.actor for e in entries[7:]}) == 2


def test_a_time_needs_an_offset() -> None:
    with pytest.raises(UsageError, match="offset"):
        timestamp(datetime(2026, 3, 1))


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_line_that_the_disk_refused_is_taken_back(
    fails: str, paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows is a line in its place: no half of it is left, and none that nobody knows of."""
    with LedgerWriter.open(paths, create=True) as writer:
        writer.append("sealed", BODIES["sealed"], "ada@example.org", now=T0)
        before = paths.ledger.read_bytes()
        real = getattr(os, fails)

        def full(fd: int, *data: Any) -> int:
            if data and len(data[0]) > 40:
                return int(real(fd, data[0][:40]))
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(os, fails, full)
            writer.append("collection-started", BODIES["collection-started"], "ada@example.org", now=T0)
        assert paths.ledger.read_bytes() == before
        writer.append("collection-started", BODIES["collection-started"], "ada@example.org", now=T0)
    assert [entry.seq for entry in read_ledger(paths.ledger.read_bytes())] == [1, 2]


def test_after_half_a_line_that_stays_nothing_is_written(
    paths: StudyPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) > 40:
            return real(fd, data[:40])
        raise OSError(28, "No space left on device")

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with LedgerWriter.open(paths, create=True) as writer:
        writer.append("sealed", BODIES["sealed"], "ada@example.org", now=T0)
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(os, "write", full)
            patch.setattr(os, "ftruncate", broken)
            writer.append("collection-started", BODIES["collection-started"], "ada@example.org", now=T0)
        with pytest.raises(LedgerFault, match="changed by another program"):
            writer.append("collection-started", BODIES["collection-started"], "ada@example.org", now=T0)
    assert repair(paths) is not None
    assert len(read_ledger(paths.ledger.read_bytes())) == 1
