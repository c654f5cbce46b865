"""The seeds of a repository: what its studies reserve and used, and what cannot be told of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import dump_file, dumps
from prereg.codec.convert import to_json
from prereg.errors import PreregError
from prereg.model.law import Valued
from prereg.model.record import Counters, Record, ShardMeta
from prereg.seal.packing import pack
from prereg.seal.records import encode_shard
from prereg.store.layout import StudyPaths
from prereg.store.seeds import not_understood, seeds_check, studies_in, used


def meta(**changes: Any) -> ShardMeta:
    base = ShardMeta(
        study="other",
        seal="0" * 64,
        unit="m.c.a",
        shard=0,
        attempt=1,
        first_seed="500",
        requests=10,
        rows=1,
        draws=10,
        records_sha256="0" * 64,
        records_size=1,
        lines_sha256="0" * 64,
        lines_size=1,
        environment="0" * 64,
        network="cut",
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:02.500000+00:00",
    )
    return replace(base, **changes)


def add_study(studies: Path, name: str, *blocks: tuple[str, int, int]) -> Path:
    root = studies / name
    root.mkdir(parents=True)
    value = {
        "schema": "prereg/seeds/v1",
        "study": name,
        "blocks": [
            {"id": b, "role": "discovery", "unit": f"m.{b}.a", "first": str(f), "end": str(e)}
            for b, f, e in blocks
        ],
    }
    (root / "seeds.json").write_text(json.dumps(value))
    return root


def add_meta(root: Path, **changes: Any) -> None:
    made = meta(**changes)
    file = root / "records" / made.unit / f"{made.shard:05d}.meta.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(dump_file(to_json(made)))


def test_the_seeds_check_names_reserved_used_and_own_overlaps(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 0, 10), ("y", 5, 7))
    used = add_study(tmp_path, "b", ("z", 5000, 5010))
    add_meta(used, first_seed=str((1 << 32) + 8), requests=4, draws=4)
    (tmp_path / "not-a-study").mkdir()
    (tmp_path / "README").write_text("")
    found = {
        (o.study_a, o.block_a, o.study_b, o.block_b, o.first, o.end, o.width) for o in seeds_check(tmp_path)
    }
    assert found == {("a", "x", "a", "y", 5, 7, 64), ("a", "x", "b", "records/m.c.a", 8, 10, 32)}


def test_a_studys_records_lie_in_its_own_blocks_without_complaint(tmp_path: Path) -> None:
    add_meta(add_study(tmp_path, "b", ("z", 500, 510)))
    assert seeds_check(tmp_path) == []


def mark(root: Path, name: str, how: str) -> None:
    """Put something that is there but cannot be read."""
    file = root / name
    root.mkdir(parents=True, exist_ok=True)
    if how == "link":
        file.symlink_to("nowhere")
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    else:
        file.write_text("<<FILL")


HOW = ["link", "pipe", "folder", "junk"]


@pytest.mark.parametrize("how", HOW)
def test_a_draft_that_is_not_understood_reserves_nothing_and_is_named(tmp_path: Path, how: str) -> None:
    add_study(tmp_path, "b", ("x", 0, 10))
    mark(tmp_path / "a", "seeds.json", how)
    assert [p.name for p in studies_in(tmp_path)] == ["a", "b"]
    assert seeds_check(tmp_path) == []
    assert not_understood(tmp_path) == ["a"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["ledger.jsonl", "records"])
def test_a_study_that_is_no_draft_must_have_seeds_that_are_understood(
    tmp_path: Path, name: str, how: str
) -> None:
    mark(tmp_path / "a", name, how)
    with pytest.raises(PreregError, match="missing") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith("a/seeds.json")
    (tmp_path / "a" / "seeds.json").write_text("<<FILL")
    with pytest.raises(PreregError, match="not understood") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith("a/seeds.json")
    assert not_understood(tmp_path) == []


@pytest.mark.parametrize("how", ["link", "pipe", "junk"])
@pytest.mark.parametrize("name", ["records", "records/m.c.a"])
def test_records_that_are_no_folder_are_a_fault(tmp_path: Path, name: str, how: str) -> None:
    root = add_study(tmp_path, "a", ("x", 0, 1))
    mark((root / name).parent, Path(name).name, how)
    with pytest.raises(PreregError, match="folder") as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith(name)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["00001.meta.json", "00001.jsonl.gz", "00000.jsonl.gz"])
def test_a_record_file_that_cannot_be_read_is_a_fault(tmp_path: Path, name: str, how: str) -> None:
    root = add_study(tmp_path, "a", ("x", 500, 510))
    add_meta(root)
    folder = next((root / "records").iterdir())
    mark(folder, name, how)
    with pytest.raises(PreregError) as caught:
        seeds_check(tmp_path)
    assert str(caught.value.where).endswith(name)


def test_the_seeds_in_the_lines_count_whatever_the_meta_says(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 9000, 9002))
    root = add_study(tmp_path, "b", ("z", 500, 510))
    add_meta(root)
    file = next((root / "records").glob("*/*.meta.json"))
    record = Record(
        seal="a" * 64, unit=file.parent.name, shard=0, attempt=1, draw=0, seed="9001", row=0,
        outcome=Valued(value='"seed":"7"'), counters=Counters(proposals=0, verifications=0, accepted=0),
    )  # fmt: skip
    file.with_name("00000.jsonl.gz").write_bytes(encode_shard([record]).data)
    (found,) = seeds_check(tmp_path)
    assert (found.study_a, found.study_b, found.first, found.end) == ("a", "b", 9001, 9002)


UNDERSTOOD = [
    [{"first": "0", "end": "18446744073709551616"}],
    [{"first": 5, "end": 6.0, "id": 3, "more": None}],
    [{"first": "1", "end": 2, "id": "x"}, {"first": "5", "end": "9", "id": "x"}],
]
NOT_UNDERSTOOD: list[Any] = [
    None,
    {},
    [],
    [1],
    [{"first": "5"}],
    [{"first": "6", "end": "6"}],
    [{"first": "-1", "end": "6"}],
    [{"first": -1, "end": 6}],
    [{"first": "01", "end": "6"}],
    [{"first": "5", "end": "06"}],
    [{"first": False, "end": 6}],
    [{"first": 5, "end": 6.5}],
    [{"first": "0", "end": "18446744073709551617"}],
    [{"first": "5", "end": "6"}, {"first": "<<FILL", "end": "9"}],
]


@pytest.mark.parametrize("blocks", UNDERSTOOD)
def test_nothing_but_first_and_end_matters_in_another_studys_seeds(tmp_path: Path, blocks: list[Any]) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    root = add_study(tmp_path, "a")
    (root / "seeds.json").write_text(json.dumps({"blocks": blocks, "study": "b", "what": 1}))
    (found,) = seeds_check(tmp_path)
    assert (found.study_a, found.study_b, found.first, found.end) == ("a", "b", 5, 6)
    assert not_understood(tmp_path) == []


@pytest.mark.parametrize("blocks", NOT_UNDERSTOOD)
def test_what_is_not_understood_of_a_draft_is_nothing(tmp_path: Path, blocks: Any) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    root = add_study(tmp_path, "a")
    (root / "seeds.json").write_text(json.dumps({"blocks": blocks}))
    assert seeds_check(tmp_path) == []
    assert not_understood(tmp_path) == ["a"]
    (root / "ledger.jsonl").write_text("")
    with pytest.raises(PreregError, match="not understood"):
        seeds_check(tmp_path)


SPELLINGS = ["00", "007", "+7", "-7", " 7", "7 ", "7\n", "7.0", "0x7", "1_0", "\u0667", "", "1" * 21]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_seed_has_one_spelling_for_every_reader(tmp_path: Path, text: str) -> None:
    """Zero, or digits that do not begin with zero: in seeds.json of a sibling, in a meta, in a line."""
    for name, blocks in (("a", [{"first": text, "end": 9}]), ("b", [{"first": 0, "end": text}])):
        root = add_study(tmp_path, name)
        (root / "seeds.json").write_text(json.dumps({"blocks": blocks}))
    assert not_understood(tmp_path) == ["a", "b"]
    root = add_study(tmp_path / "lines", "c", ("z", 0, 10))
    add_meta(root)
    file = next((root / "records").glob("*/*.meta.json"))
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b'"first_seed":"500"', b'"first_seed":' + dumps(text)))
    with pytest.raises(PreregError, match="first_seed"):
        seeds_check(tmp_path / "lines")
    file.write_bytes(whole)
    lines = zlib.decompress(drawn(505), 31).replace(b'"seed":"505"', b'"seed":' + dumps(text))
    file.with_name("00000.jsonl.gz").write_bytes(pack(lines).data)
    with pytest.raises(PreregError, match="do not each have one seed"):
        seeds_check(tmp_path / "lines")


def test_a_copy_of_a_study_overlaps_with_it(tmp_path: Path) -> None:
    add_study(tmp_path, "a", ("x", 5, 6))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert len(seeds_check(tmp_path)) == 1


def test_the_command_names_what_is_not_understood(tmp_path: Path) -> None:
    add_study(tmp_path, "b", ("y", 5, 6))
    mark(tmp_path / "a", "seeds.json", "link")
    command = [str(Path(sys.executable).parent / "prereg"), "seeds", "check", str(tmp_path)]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == {"studies": ["a", "b"], "overlaps": [], "not_understood": ["a"]}
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "not understood, so reserving nothing: a" in " ".join((run.stdout + run.stderr).split())


def test_an_altered_meta_is_not_passed_over(tmp_path: Path) -> None:
    root = add_study(tmp_path, "a", ("x", 0, 1))
    add_meta(root)
    file = next(root.rglob("*.meta.json"))
    file.write_bytes(file.read_bytes().replace(b'"first_seed":"500"', b'"first_seed":500'))
    with pytest.raises(PreregError, match="first_seed"):
        seeds_check(tmp_path)


def drawn(seed: int, attempt: int = 1) -> bytes:
    """A shard of one draw with that seed."""
    record = Record(
        seal="a" * 64, unit="m.c.a", shard=0, attempt=attempt, draw=0, seed=str(seed), row=0,
        outcome=Valued(value=1), counters=Counters(proposals=0, verifications=0, accepted=0),
    )  # fmt: skip
    return encode_shard([record]).data


def test_seeds_of_several_attempts_and_results_are_used_once(tmp_path: Path) -> None:
    root = add_study(tmp_path, "b", ("z", 500, 510))
    add_meta(root)
    first = root / "records/m.c.a"
    for folder, attempt in ((first, 1), (first.with_name("m.c.a.attempt-2"), 2)):
        folder.mkdir(exist_ok=True)
        (folder / "00000.meta.json").write_bytes(dump_file(to_json(meta(attempt=attempt))))
        for name in ("00000", "00000.duplicate-1", "00000.duplicate-2"):
            (folder / f"{name}.jsonl.gz").write_bytes(drawn(505, attempt))
    spans = list(used(StudyPaths(root=root)))
    assert [(s.block, s.first, s.end) for s in spans] == [("records/m.c.a", 500, 510)]
    add_study(tmp_path, "a", ("x", 509, 512))
    assert [(o.first, o.end) for o in seeds_check(tmp_path)] == [(509, 510), (509, 510)]


def test_a_second_result_that_waits_for_its_shard_tells_its_seeds(tmp_path: Path) -> None:
    folder = add_study(tmp_path, "b", ("z", 500, 510)) / "records/m.c.a"
    folder.mkdir(parents=True)
    (folder / "00000.duplicate-1.jsonl.gz").write_bytes(drawn(9001))
    add_study(tmp_path, "a", ("x", 9000, 9002))
    (found,) = seeds_check(tmp_path)
    assert (found.study_b, found.block_b, found.first, found.end) == ("b", "records/m.c.a", 9001, 9002)
    (folder / "00000.duplicate-1.jsonl.gz").rename(folder / "00000.jsonl.gz")
    with pytest.raises(PreregError, match="has no meta"):
        seeds_check(tmp_path)
