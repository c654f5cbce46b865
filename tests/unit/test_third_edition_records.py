"""Attempts and second results in a whole ledger of edition 3 (docs/formats.md section 21)."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
import study_fixture
from third_fixture import collect_third, make_third_study

from prereg.errors import PreregError
from prereg.seal.duplicates import differing_lines, whole_lines
from prereg.seal.packing import BadShard, pack
from prereg.seal.relocate import relocate_study
from prereg.seal.verify import verify_report, verify_study
from prereg.store.folder import shard_at
from prereg.store.layout import StudyPaths


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = make_third_study(tmp_path_factory.mktemp("third"))
    study_fixture.seal(paths)
    collect_third(paths)
    return paths


def test_a_study_that_was_tried_again_verifies(collected: StudyPaths) -> None:
    said = {step.number: (step.status, step.detail) for step in verify_report(collected)}
    assert said[7] == (
        "ok",
        "8 shards, 1000 draws, 12 leaves, 4 duplicates (of every attempt), 1 unit left open by a ceiling",
    )
    assert {status for status, _ in said.values()} <= {"ok", "not-checked"}


def test_what_counts_is_of_the_present_attempt(collected: StudyPaths) -> None:
    verified = verify_study(collected)
    assert {place: body["attempt"] for place, body in verified.stored.items()} == {
        ("drawn.same.off", 0): 1,
        ("drawn.same.off", 1): 1,
        ("drawn.same.on", 0): 2,
        ("drawn.same.on", 1): 2,
        ("walked.other.off", 0): 1,
        ("walked.other.on", 0): 2,
        ("walked.same.off", 0): 1,
    }
    assert set(verified.stored_in_all) - {(u, b["attempt"], s) for (u, s), b in verified.stored.items()} == {
        ("drawn.same.on", 1, 0)
    }
    assert verified.invalid == {"walked.same.on": "it broke"}
    assert verified.lost() == {"walked.same.on"}
    assert verified.missing() == []
    assert [verified.attempt_of(u) for u in ("drawn.same.on", "walked.same.on", "walked.other.on")] == [
        2,
        1,
        2,
    ]
    assert verified.tried["walked.other.on"].cause == "request-ceiling"


def whole(paths: StudyPaths, file: Path) -> bytes:
    at = shard_at(file.relative_to(paths.root).as_posix())
    assert at is not None
    verified = verify_study(paths)
    return whole_lines(file.read_bytes(), verified.study, verified.seal, at.unit, at.shard, at.attempt)


def test_a_result_is_whole_or_none(collected: StudyPaths) -> None:
    file = collected.duplicate("drawn.same.on", 0, 2, 2)
    lines = whole(collected, file)
    first = gzip.decompress(collected.shard_records("drawn.same.on", 0, 2).read_bytes())
    assert differing_lines(first, lines) == 3
    assert whole(collected, collected.shard_records("drawn.same.on", 0, 2)) == first
    verified = verify_study(collected)

    def read(gz: bytes, unit: str = "drawn.same.on", shard: int = 0, attempt: int = 2) -> bytes:
        return whole_lines(gz, verified.study, verified.seal, unit, shard, attempt)

    data = file.read_bytes()
    faults: dict[str, tuple[bytes, dict[str, Any]]] = {
        "ends before draw": (pack(b"".join(lines.splitlines(keepends=True)[:-1])).data, {}),
        "has lines after draw": (pack(lines + lines.splitlines(keepends=True)[-1]).data, {}),
        "the plan says 1": (data, {"attempt": 1}),
        "the plan says 'drawn.same.off'": (data, {"unit": "drawn.same.off", "attempt": 1}),
        "no shard of the plan": (data, {"shard": 2}),
        "is no shard": (data, {"unit": "drawn.none.on"}),
        "not one whole gzip member": (data[:-4], {}),
        "not one whole": (data + data, {}),
        "mtime 0": (b"x" + data, {}),
    }
    for what, (gz, more) in faults.items():
        with pytest.raises(BadShard, match=what):
            read(gz, **more)


def test_of_trees_that_are_not_alike_leaves_are_counted_by_number(collected: StudyPaths) -> None:
    lines = gzip.decompress(collected.shard_records("walked.other.on", 0, 2).read_bytes())
    each = lines.splitlines(keepends=True)
    assert differing_lines(lines, lines) == 0
    assert differing_lines(lines, b"".join(each[:-1])) == 1
    assert differing_lines(b"".join(each[:1]), lines) == 3
    file = collected.duplicate("walked.other.on", 0, 2, 1)
    assert differing_lines(lines, whole(collected, file)) == 1
    fewer = pack(b"".join(each[:-1])).data  # a tree of other leaves is whole too: no meta speaks of them
    verified = verify_study(collected)
    found = whole_lines(fewer, verified.study, verified.seal, "walked.other.on", 0, 2)
    assert found == b"".join(each[:-1])
    with pytest.raises(BadShard, match="is 2; the plan says 1"):
        whole_lines(file.read_bytes(), verified.study, verified.seal, "walked.other.on", 0, 1)
    with pytest.raises(BadShard, match="has no leaf"):
        whole_lines(pack(b"").data, verified.study, verified.seal, "walked.other.on", 0, 2)
    with pytest.raises(BadShard, match="the plan says 0"):
        whole_lines(pack(b"".join(each[1:])).data, verified.study, verified.seal, "walked.other.on", 0, 2)


def test_records_of_every_attempt_are_relocated(collected: StudyPaths, tmp_path: Path) -> None:
    paths = study_fixture.copy_repository(collected, tmp_path / "copy")
    shutil.copytree(paths.records, tmp_path / "archive")
    gone = [paths.shard_records("drawn.same.on", 0), paths.shard_meta("drawn.same.on", 1, 2)]
    for file in gone:
        file.unlink()
    study_fixture.git(paths.repository, "commit", "-q", "-a", "-m", "Archived")
    key = study_fixture.signing_key(paths)
    entry = relocate_study(paths, tmp_path / "archive", reason="x", key=key, principal="ada@example.org")
    assert {one["to"] for one in entry.body["files"]} == {
        "records/drawn.same.on/00000.jsonl.gz",
        "records/drawn.same.on.attempt-2/00001.meta.json",
    }
    assert [step.number for step in verify_report(paths) if step.status == "failed"] == []


def test_what_a_killed_run_leaves_is_let_through_to_the_next_and_to_nobody_else(
    collected: StudyPaths, tmp_path: Path
) -> None:
    paths = study_fixture.copy_repository(collected, tmp_path / "copy")
    one = paths.duplicate("drawn.same.off", 0, 1, 1)
    shutil.copy(paths.shard_records("drawn.same.off", 0), one)
    verify_study(paths, allow_partials=True)
    with pytest.raises(PreregError, match="keeps no such duplicate"):
        verify_study(paths)
    one.rename(one.with_name("00001.duplicate-2.jsonl.gz"))
    with pytest.raises(PreregError, match="keeps no such duplicate"):
        verify_study(paths)
    shutil.copytree(one.parent, one.parent.with_name("drawn.same.off.attempt-2"))
    with pytest.raises(PreregError, match="no such attempt was made"):
        verify_study(paths, allow_partials=True)


def test_a_folder_of_an_attempt_that_the_protocol_does_not_have_is_refused_even_empty(
    collected: StudyPaths, tmp_path: Path
) -> None:
    paths = study_fixture.copy_repository(collected, tmp_path / "copy")
    paths.shard_records("drawn.same.off", 0, 2).parent.mkdir()
    verify_study(paths)
    paths.shard_records("drawn.same.off", 0, 3).parent.mkdir()
    with pytest.raises(PreregError, match=r"the protocol has 2 attempts \(step 7"):
        verify_study(paths, allow_partials=True)
    first = study_fixture.make_study(tmp_path / "first")
    study_fixture.seal(first)
    study_fixture.fabricate_records(first)
    first.shard_records("main.fair.old", 0, 2).parent.mkdir()
    with pytest.raises(PreregError, match=r"the protocol has one attempt \(step 7"):
        verify_study(first, allow_partials=True)
