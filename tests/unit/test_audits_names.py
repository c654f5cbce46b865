"""Names that no report could hold, and folders deeper than any path: each is named, in a whole report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import failed, look, make_keys
from audits_plan import Plan, second_plan

from audits.fault import Found
from audits.load import LONGEST, Folder
from audits.report import report_bytes
from audits.run import Options, audit
from audits.seal import check_folder, check_paths
from audits.seeds import Other, check_seeds

NOT_UTF8 = os.fsdecode(b"bad\xff")
NOT_NFC = unicodedata.normalize("NFD", "caf\u00e9")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = make_keys(tmp_path_factory.mktemp("keys"))
    return Builder(tmp_path_factory.mktemp("names") / "r", keys, Plan()).build()


@pytest.fixture
def copy(study: Path, tmp_path: Path) -> Path:
    shutil.copytree(study.parent.parent, tmp_path / "r", symlinks=True)
    return tmp_path / "r/studies/tiny"


@contextmanager
def nested(folder: Path) -> Iterator[None]:
    """1,500 folders of one letter within each other; away again afterwards: Python could not clear them."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.mark.parametrize("at", ["", "seal/", "records/"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_name_that_is_not_utf8_fails_step_1(copy: Path, at: str, kind: str) -> None:
    path = copy / (at + NOT_UTF8)
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("x")
    else:
        path.write_bytes(b"")
    outcome = look(copy)
    assert outcome.result == "FAILED"
    assert f"{at}bad\\udcff: a name that is not UTF-8" in failed(outcome)[1]


def test_a_name_that_is_not_nfc_is_named_in_escapes(copy: Path) -> None:
    (copy / NOT_NFC).write_bytes(b"")
    assert "cafe\\u0301: not listed" in failed(look(copy))[1]


@pytest.mark.parametrize("name", [NOT_UTF8, NOT_NFC])
def test_a_study_beside_this_one_with_such_a_name(copy: Path, name: str) -> None:
    (copy.parent / name).mkdir()
    (copy.parent / name / "seeds.json").write_bytes(b"{")
    outcome = look(copy)
    assert failed(outcome) == {}
    assert ascii(name)[1:-1] in outcome.steps[10].detail()


@pytest.mark.parametrize("name", [NOT_UTF8, NOT_NFC])
def test_a_folder_of_such_a_name_that_is_no_study_yet(tmp_path: Path, name: str) -> None:
    (tmp_path / "studies" / name).mkdir(parents=True)
    (tmp_path / "studies" / name / "protocol.json").write_bytes(b"{}")
    here = tmp_path / "studies"
    outcome = audit(Options(study=here / name, studies=here, signers=here / "x", roles=here / "x"))
    assert json.loads(report_bytes(outcome.value()))["study"] == ascii(name)[1:-1]


def test_folders_deeper_than_a_path_are_named_and_not_entered(copy: Path) -> None:
    (copy / "deep").mkdir()
    with nested(copy / "deep"):
        said = failed(look(copy))[1]
    assert "deep/a/a/a/a/a/a/a" in said
    assert f"more than {LONGEST} characters" in said
    assert "empty folder" not in said


def test_the_longest_path_is_entered(tmp_path: Path) -> None:
    path = "/".join(["a" * 99] * 10)
    assert len(path) == LONGEST - 1
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / f"{path}x").write_bytes(b"")
    folder, found = Folder(tmp_path), Found()
    folder.scan()
    check_folder(folder, {f"{path}x"}, found)
    folder.close()
    assert found.faults == []
    (tmp_path / f"{path}xx").write_bytes(b"")
    folder = Folder(tmp_path)
    folder.scan()
    folder.close()
    assert folder.entries[f"{path}xx"].kind == "beyond"


def test_deep_folders_among_the_records_of_a_study_beside_this_one(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "records").mkdir(parents=True)
    block = {"id": "x", "first": "0", "end": "9"}
    (there / "seeds.json").write_text(json.dumps({"blocks": [block]}))
    found = Found()
    here: Any = SimpleNamespace(id="here", blocks=[])
    with nested(there / "records"):
        check_seeds(here, None, {"there": Other(there, False)}, found)
    (fault,) = found.faults
    assert fault.file.startswith("there/records/a/a/a/")
    assert f"more than {LONGEST} characters" in fault.what


RESERVED = (
    "con", "CON", "Prn", "aux", "nul", "conin$", "CONOUT$", "com0", "com1", "COM9", "lpt0", "Lpt7",
    "com\u00b9", "LPT\u00b2", "com\u00b3", "con.txt", "nul.tar.gz", "aux .c", "con  .x.y", "con/x", "a/nul",
    "a/Com1.py/b", "a.", "a ", "a./b", "a /b", "...", "a<b", "a>b", "a:b", 'a"b', "a|b", "a?", "a*b", "d/a:b",
    "stamps/1/x", "stamps",
)  # fmt: skip
FREE = (
    "con1", "xcon", "con_", "com", "lpt", "com10", "lpt12", "com\u2074", ".con", ".nul.txt", "a.con", "conin",
    "conout$x", "co\u0274", "con\u0131n$", "con\u00efn$", "a b", "a.b", " a", "com\u0661", "null",
    "auxiliary.c", "stamp/1", "stampsx/1",
)  # fmt: skip


@pytest.mark.parametrize("path", RESERVED)
def test_a_path_that_some_system_reserves_is_refused(path: str) -> None:
    found = Found()
    check_paths({"files": [{"path": path}]}, "m", found)
    assert len(found.faults) == 1 and found.faults[0].pointer == "/files/0/path"


def test_a_path_that_only_looks_like_a_reserved_one_is_not() -> None:
    found = Found()
    check_paths({"files": [{"path": path} for path in sorted(FREE)]}, "m", found)
    assert found.faults == []


@pytest.mark.parametrize("make", [Plan, second_plan])
def test_a_study_of_any_edition_with_a_reserved_name_fails_step_2(
    tmp_path: Path, make: Callable[..., Plan]
) -> None:
    def edit(name: str, value: Any) -> Any:
        if name == "code":
            (value / "aux.c").write_bytes(b"")
        return value

    keys = make_keys(tmp_path)
    found = failed(look(Builder(tmp_path / "r", keys, make(edit=edit, upto="sealed")).build()))
    assert set(found) == {2} and "path 'code/aux.c' has a part that some system reserves" in found[2]
