"""What earlier runs took, by the ledger's times and by their journals (docs/formats.md section 21)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from prereg.collect.ceilings import Run, Spent, by_ledger, longest, runs_of
from prereg.collect.run_journal import RunJournal, Took
from prereg.model.seal import Entry, EntryType
from prereg.model.study import Ceilings

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Ceilings(study_seconds=100, unit_seconds=30, request_seconds=5, on_ceiling="INVALID")
DAY = 86_400


def entry(seq: int, type_: EntryType, second: int, unit: str = "", shard: int = 0) -> Entry:
    time = (BEGIN + timedelta(seconds=second)).isoformat()
    body: dict[str, Any] = {"unit": unit, "shard": shard, "attempt": 1} if unit else {}
    return Entry(seq=seq, time=time, type=type_, actor="a", body=body, body_sha256="", prev=f"line {seq - 1}")


def runs(*told: tuple[Any, ...]) -> list[Run]:
    """Of a ledger of these entries, which are numbered from 1."""
    return runs_of([entry(seq, *rest) for seq, rest in enumerate(told, 1)], "head")


def spent(*told: tuple[Any, ...], metas: Mapping[int, float] | None = None, after: int = 0) -> Spent:
    """What all runs took; `metas` has the seconds of a stored shard by its entry's number."""
    total = Spent()
    for run in runs(*told):
        one = by_ledger(run, LIMITS, lambda stored: (metas or {}).get(stored.seq, 0.0), after=after)
        total.add(one.study, one.units)
    return total


def test_pauses_between_runs_are_not_charged() -> None:
    told = [
        *(("sealed", 0), ("collection-started", 10), ("shard-stored", 14, "a")),  # killed after this
        *(("collection-started", 30), ("shard-stored", 31, "b"), ("collection-ended", 33)),
        *(("deviation", 40), ("collection-started", 50)),
    ]
    assert spent(*told).study == 4 + 3
    assert spent(*told[:1]).study == 0
    assert [(run.digest, len(run.entries)) for run in runs(*told)] == [
        ("line 2", 2),
        ("line 4", 3),
        ("head", 1),
    ]


def test_a_killed_run_took_until_it_last_said_what_it_began() -> None:
    told = [
        *(("sealed", 0), ("collection-started", 10), ("attempt", 11, "a")),
        *(("shard-stored", 14, "a"), ("duplicate", 15, "a"), ("attempt", 19, "a", 1)),
    ]
    assert [spent(*told[:n]).study for n in (3, 5, 6)] == [1, 5, 9]


def test_what_failed_and_what_was_cut_off_is_charged() -> None:
    told = [
        *(("sealed", 0), ("collection-started", 1), ("attempt", 2, "a"), ("attempt", 2, "b")),
        *(("shard-stored", 5, "b"), ("unit-invalid", 6, "a"), ("attempt", 7, "a"), ("collection-ended", 10)),
        *(("collection-started", 30), ("attempt", 31, "b", 1), ("attempt", 33, "a")),  # killed: b took 2
        *(("collection-started", 50), ("attempt", 51, "a"), ("shard-stored", 59, "a")),
    ]
    assert spent(*told, metas={5: 2.5, 14: 7.0}).units == {"a": 4.0 + 3.0 + 0.0 + 7.0, "b": 2.5 + 2.0}
    assert spent(*told[:2]).units == {}


def test_nothing_takes_longer_than_a_unit_may() -> None:
    """A clock that jumped by a day, or a machine that slept for one, adds no more than that at one place."""
    told = [
        *(("sealed", 0), ("collection-started", 1), ("attempt", 2, "a"), ("attempt", 3, "b")),
        *(("shard-stored", DAY, "a"), ("collection-ended", DAY + 1)),
    ]
    found = spent(*told, metas={5: DAY - 2.0})
    assert found.study == 2 + longest(LIMITS) + 1
    assert found.units == {"a": longest(LIMITS), "b": longest(LIMITS)}
    # In a meta of before runs had a clock of their own it could go back.
    assert spent(*told, metas={5: -3600.0}).units["a"] == 0


def test_what_a_journal_has_is_not_counted_again() -> None:
    told = [
        *(("sealed", 0), ("collection-started", 1), ("attempt", 2, "a"), ("attempt", 3, "b")),
        *(("shard-stored", 8, "a"), ("attempt", 9, "a", 1)),
    ]
    assert spent(*told, metas={5: 6.0}, after=6) == Spent(study=0.0, units={"b": 0.0, "a": 0.0})
    # A kill kept the last entry out of it.
    assert spent(*told, metas={5: 6.0}, after=5) == Spent(study=1.0, units={"b": 1.0, "a": 0.0})
    assert spent(*told, metas={5: 6.0}, after=4) == Spent(study=6.0, units={"b": 6.0, "a": 5.0})


TOOK = Took(seq=7, study=12.5, units={"main.fair.old": 3.25, "main.fair.new": 0.0})


def test_a_journal_says_what_was_kept_last(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path / "walks" / "seal", "a" * 64)
    assert journal.read() is None
    journal.keep(Took(seq=2, study=0.0, units={}))
    journal.keep(TOOK)
    assert RunJournal(tmp_path / "walks" / "seal", "a" * 64).read() == TOOK
    assert RunJournal(tmp_path / "walks" / "seal", "b" * 64).read() is None
    assert len(list((tmp_path / "walks" / "seal").iterdir())) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"run":"' + b"a" * 64, b'"run":"' + b"b" * 64),
        (b"run-journal/v1", b"run-journal/v2"),
        (b'"study":12.5', b'"study":-12.5'),
        (b'"study":12.5', b'"study":true'),
        (b'"study":12.5', b'"study":NaN'),
        (b'"study":12.5', b'"study":1e999'),
        (b'"seq":7', b'"seq":"7"'),
        (b'"seq":7', b'"seq":true'),
        (b"3.25", b'"3.25"'),
        (b'"units":{', b'"units":[{'),
        (b"{", b""),
        (b"{", b"\0\xff{"),
    ],
)
def test_a_journal_of_garbage_is_none(tmp_path: Path, old: bytes, new: bytes) -> None:
    journal = RunJournal(tmp_path, "a" * 64)
    journal.keep(TOOK)
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))
    assert journal.read() is None


def test_a_journal_that_is_torn_is_none(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path, "a" * 64)
    journal.keep(TOOK)
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    for size in range(len(data)):
        file.write_bytes(data[:size])
        assert journal.read() is None, data[:size]


def test_where_no_journal_can_be_written_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "walks").write_text("a file, where the folder is to be")
    journal = RunJournal(tmp_path / "walks", "a" * 64)
    journal.keep(TOOK)
    assert journal.read() is None
