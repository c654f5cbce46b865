"""Overlap of seeds at both widths, across studies that may be unreadable."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from audits_tools import pack

import audits.seeds
from audits.fault import Found
from audits.load import LARGE
from audits.records import Records, Tally
from audits.seeds import LOW, Interval, check_seeds, find_others, low_pieces, overlap, runs
from audits.study import Study

TOP = 2**64


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [
        (0, 5, [(0, 5)]),
        (LOW - 2, LOW, [(LOW - 2, LOW)]),
        (LOW - 2, LOW + 3, [(LOW - 2, LOW), (0, 3)]),
        (7 * LOW, 7 * LOW + 1, [(0, 1)]),
        (5, 5 + LOW, [(0, LOW)]),
        (TOP - 1, TOP, [(LOW - 1, LOW)]),
    ],
)
def test_low_pieces(first: int, end: int, expected: list[tuple[int, int]]) -> None:
    assert low_pieces(first, end) == expected
    if end - first < LOW:
        assert {n for a, b in expected for n in range(a, b)} == {n % LOW for n in range(first, end)}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 5), (5, 9), None),
        ((0, 6), (5, 9), (5, 6, "64 bits")),
        ((LOW, LOW + 5), (4, 9), (4, 5, "their low 32 bits")),
        ((LOW - 1, LOW + 1), (2 * LOW, 2 * LOW + 1), (0, 1, "their low 32 bits")),
        ((0, LOW), (3 * LOW + 7, 3 * LOW + 8), (7, 8, "their low 32 bits")),
        ((LOW, LOW + 5), (5, 9), None),
    ],
)
def test_overlap(a: tuple[int, int], b: tuple[int, int], expected: tuple[int, int, str] | None) -> None:
    one, other = Interval(*a, "s", "x"), Interval(*b, "t", "y")
    assert overlap(one, other) == expected
    assert overlap(other, one) == expected


def test_runs() -> None:
    assert runs([]) == []
    assert runs([5, 3, 4, 9, 4]) == [(3, 6), (9, 10)]


def _block(name: str, first: int, end: int) -> dict[str, Any]:
    return {"id": name, "role": "pilot", "unit": f"m.{name}.off", "first": str(first), "end": str(end)}


def _here(*blocks: dict[str, Any], used: tuple[tuple[int, int], ...] = ()) -> tuple[Study, Records]:
    study = SimpleNamespace(id="here", blocks=list(blocks))
    return study, Records(tallies={"m.a.off": Tally(seeds=list(used))})  # type: ignore[return-value]


def _other(root: Path, name: str, *blocks: dict[str, Any], used: list[int] | None = None) -> Path:
    folder = root / name
    folder.mkdir()
    (folder / "seeds.json").write_text(json.dumps({"study": name, "blocks": blocks}))
    if used is not None:
        (folder / "records/m.x.off").mkdir(parents=True)
        lines = "".join(json.dumps({"seed": str(seed)}) + "\n" for seed in used)
        (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(pack(lines.encode()))
    return folder


def _check(here: tuple[Study, Records], root: Path) -> list[str]:
    return _found(here, root)[0]


def _found(here: tuple[Study, Records], root: Path) -> tuple[list[str], str]:
    """The faults, and the step's whole detail."""
    found = Found()
    check_seeds(*here, find_others(root / "here", root), found)
    return [str(fault) for fault in found.faults], found.detail()


def test_disjoint_studies(tmp_path: Path) -> None:
    _other(tmp_path, "there", _block("x", 20, 30), used=[20, 21])
    assert _check(_here(_block("a", 0, 10), _block("b", 10, 20), used=((0, 10),)), tmp_path) == []


def test_blocks_of_one_study(tmp_path: Path) -> None:
    (fault,) = _check(_here(_block("a", 0, 10), _block("b", 8, 20)), tmp_path)
    assert "block a of here and block b of here share [8, 10) at 64 bits" in fault


def test_low_bits_of_one_study(tmp_path: Path) -> None:
    (fault,) = _check(_here(_block("a", 0, 10), _block("b", 9 * LOW + 9, 9 * LOW + 12)), tmp_path)
    assert "share [9, 10) at their low 32 bits" in fault


def test_a_seed_used_twice(tmp_path: Path) -> None:
    (fault,) = _check(_here(_block("a", 0, 10), used=((0, 4), (3, 6))), tmp_path)
    assert "seed 3 is used for two requests" in fault


def test_blocks_of_two_studies(tmp_path: Path) -> None:
    _other(tmp_path, "there", _block("x", 5, 7))
    (fault,) = _check(_here(_block("a", 0, 10), used=((0, 10),)), tmp_path)
    assert "block a of here and block x of there share [5, 7) at 64 bits" in fault


def test_seeds_another_study_used_outside_its_blocks(tmp_path: Path) -> None:
    _other(tmp_path, "there", _block("x", 50, 60), used=[50, 4, 5, LOW + 1])
    faults = _check(_here(_block("a", 0, 10)), tmp_path)
    assert len(faults) == 2
    assert "block a of here and used by m.x.off of there share [4, 6) at 64 bits" in faults[0]
    assert "share [1, 2) at their low 32 bits" in faults[1]


def _link(path: Path, target: str) -> None:
    path.rename(path.with_name("r"))
    path.symlink_to(target)


def _link_to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _records_pipe(folder: Path) -> None:
    shutil.rmtree(folder / "records")
    _pipe(folder / "records")


BROKEN: dict[str, Callable[[Path], object]] = {
    "seeds.json": lambda folder: (folder / "seeds.json").write_bytes(b"{"),
    "seeds.json without blocks": lambda folder: (folder / "seeds.json").write_bytes(b"{}"),
    "seeds.json with a wild seed": lambda folder: (folder / "seeds.json").write_text(
        json.dumps({"blocks": [_block("x", -5, 3)]})
    ),
    "seeds.json with an empty block": lambda folder: (folder / "seeds.json").write_text(
        json.dumps({"blocks": [_block("x", 5, 5)]})
    ),
    "seeds.json with a leading zero": lambda folder: (folder / "seeds.json").write_text(
        json.dumps({"blocks": [_block("x", 50, 60) | {"first": "050"}]})
    ),
    "seeds.json with a zero twice": lambda folder: (folder / "seeds.json").write_text(
        json.dumps({"blocks": [_block("x", 0, 60) | {"first": "00"}]})
    ),
    "a shard with a leading zero": lambda folder: (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(
        pack(b'{"seed":"050"}\n')
    ),
    "seeds.json is a dangling link": lambda folder: _link(folder / "seeds.json", "nowhere"),
    "a shard that is no gzip": lambda folder: (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(b"x"),
    "a shard cut short": lambda folder: (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(
        pack(b'{"seed":"1"}\n')[:-4]
    ),
    "a shard without seeds": lambda folder: (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(
        pack(b"{}\n")
    ),
    "records is a link": lambda folder: _link(folder / "records", "r"),
    "a unit's records are a link": lambda folder: _link(folder / "records/m.x.off", "r"),
    "seeds.json is gone": lambda folder: (folder / "seeds.json").unlink(),
    "seeds.json has no block": lambda folder: (folder / "seeds.json").write_text('{"blocks": []}'),
    "seeds.json is a folder": lambda folder: _link_to_folder(folder / "seeds.json"),
    "seeds.json is a link": lambda folder: _link(folder / "seeds.json", "r"),
    "a shard is a link": lambda folder: _link(folder / "records/m.x.off/00000.jsonl.gz", "r"),
    "seeds.json is a pipe": lambda folder: _pipe(folder / "seeds.json"),
    "a shard is a pipe": lambda folder: _pipe(folder / "records/m.x.off/00000.jsonl.gz"),
    "records is a pipe": lambda folder: _records_pipe(folder),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_study_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    folder = _other(tmp_path, "there", _block("x", 50, 60), used=[50])
    here = _here(_block("a", 0, 10))
    assert _check(here, tmp_path) == []
    BROKEN[name](folder)
    (fault,) = _check(here, tmp_path)
    assert fault.startswith("there/")


def test_what_is_left_of_a_study_without_its_seeds_still_counts(tmp_path: Path) -> None:
    folder = _other(tmp_path, "there", _block("x", 5, 7), used=[5, 6])
    here = _here(_block("a", 0, 10))
    assert len(_check(here, tmp_path)) == 2
    (folder / "seeds.json").unlink()
    gone, overlap_ = _check(here, tmp_path)
    assert gone.startswith("there/seeds.json: ")
    assert "used by m.x.off of there share [5, 7)" in overlap_


@pytest.mark.parametrize("left", ["ledger.jsonl", "records"])
def test_a_study_of_which_only_evidence_is_left(tmp_path: Path, left: str) -> None:
    (tmp_path / "there").mkdir()
    here = _here(_block("a", 0, 10))
    assert _check(here, tmp_path) == []
    (tmp_path / "there" / left).mkdir() if left == "records" else (tmp_path / "there" / left).write_text("")
    (fault,) = _check(here, tmp_path)
    assert fault.startswith("there/seeds.json: ")


def test_a_copy_of_the_same_seal_under_another_name_overlaps(tmp_path: Path) -> None:
    for name in ("here", "copy"):
        folder = _other(tmp_path, name, _block("a", 0, 10))
        (folder / "seal").mkdir()
        (folder / "seal/manifest.json").write_bytes(b"m")
    (fault,) = _check(_here(_block("a", 0, 10)), tmp_path)
    assert "block a of here and block a of copy share [0, 10)" in fault


DRAFTS = [name for name in BROKEN if name.startswith("seeds.json") and name != "seeds.json is gone"]


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_that_cannot_be_understood_reserves_nothing_and_is_named(tmp_path: Path, name: str) -> None:
    BROKEN[name](_other(tmp_path, "there", _block("x", 5, 7)))
    faults, detail = _found(_here(_block("a", 0, 10)), tmp_path)
    assert faults == []
    assert "there" in detail
    assert "reserves nothing" in detail


def test_a_draft_that_is_understood_reserves_its_blocks(tmp_path: Path) -> None:
    _other(tmp_path, "there", _block("x", 5, 7), _block("y", TOP - 4, TOP))
    (fault,) = _check(_here(_block("a", 0, 10)), tmp_path)
    assert "block x of there share [5, 7)" in fault


def test_this_study_by_another_path_is_no_other_study(tmp_path: Path) -> None:
    folder = _other(tmp_path, "here", _block("a", 0, 10))
    (tmp_path / "alias").symlink_to(folder)
    assert find_others(tmp_path / "alias", tmp_path) == {}


@pytest.mark.parametrize("more", [0, 1])
def test_a_shard_unpacks_to_the_most_bytes_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(audits.seeds, "LARGE", 1000)
    folder = _other(tmp_path, "there", _block("x", 50, 60), used=[50])
    line = b'{"seed":"50"}'
    lines = line + b" " * (999 + more - len(line)) + b"\n"
    (folder / "records/m.x.off/00000.jsonl.gz").write_bytes(pack(lines))
    faults = _check(_here(_block("a", 0, 10)), tmp_path)
    assert len(faults) == more
    assert all("of acceptable size" in fault for fault in faults)


def test_the_most_bytes_are_those_of_this_study() -> None:
    assert audits.seeds.LARGE == LARGE
