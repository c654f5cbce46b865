"""Which names are known where, links are seen as links, and the harness's bytes and digest."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from prereg.errors import UsageError, VerificationFailed
from prereg.store.files import read_in
from prereg.store.folder import is_known, is_known_folder, is_unsealed, leftovers, partial_of, shard_at, walk
from prereg.store.harness import harness_digest, harness_files, sealed_code, sealed_harness
from prereg.store.layout import StudyPaths


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("ledger.jsonl", True),
        ("ledger.head.json.sig", True),
        ("seal/SHA256SUMS", True),
        ("records/a.b.c/00000.jsonl.gz", True),
        ("records/a.b.c/00000.meta.json", True),
        ("analysis/decisions.json", True),
        ("audit/report.json.sig", True),
        ("seal/other", False),
        ("records/a.b.c/0.jsonl.gz", False),
        ("records/a.b.c/000000.jsonl.gz", False),
        ("records/a.b.c.attempt-2/00000.jsonl.gz", True),
        ("records/a.b.c.attempt-9/00000.meta.json", True),
        ("records/a.b.c.attempt-1/00000.jsonl.gz", False),
        ("records/a.b.c.attempt-10/00000.jsonl.gz", False),
        ("records/a.b.c.attempt-2.attempt-2/00000.jsonl.gz", False),
        ("records/a.b.c/00000.duplicate-1.jsonl.gz", True),
        ("records/a.b.c.attempt-2/00000.duplicate-10.jsonl.gz", True),
        ("records/a.b.c/00000.duplicate-0.jsonl.gz", False),
        ("records/a.b.c/00000.duplicate-01.jsonl.gz", False),
        ("records/a.b.c/00000.duplicate-1.meta.json", False),
        ("records/a.b.c/00000.duplicate-1.duplicate-1.jsonl.gz", False),
        ("records/a.b/00000.jsonl.gz", False),
        ("records/a.b.c/00000.jsonl", False),
        ("records/00000.jsonl.gz", False),
        ("records/a.b.c/٠٠٠٠٠.jsonl.gz", False),
        ("analysis/tables/x.csv", False),
        ("ledger.jsonl\n", False),
    ],
)
def test_known_places(path: str, known: bool) -> None:
    assert is_known(path) is known


def test_what_the_manifest_leaves_out() -> None:
    assert all(map(is_unsealed, ("seal/x", "records/x", "analysis/x", "audit/x", "report/x", "ledger.jsonl")))
    assert not any(map(is_unsealed, ("seals/x", "code/harness/seal/x", "ledger.txt", "protocol.json")))
    assert is_known_folder("records/a.b.c")
    assert not is_known_folder("records/a.b.c/d")
    assert is_known_folder("records/a.b.c.attempt-2")
    assert not is_known_folder("records/a.b.c.attempt-1")


@pytest.mark.parametrize(
    ("unit", "shard", "attempt", "copy"),
    [("a.b.c", 12, 1, 0), ("a.b.c", 0, 3, 0), ("a.b.c", 7, 1, 11), ("a.b.c", 0, 2, 1)],
)
def test_what_lies_at_a_place_of_records_is_told_by_its_name(
    unit: str, shard: int, attempt: int, copy: int, tmp_path: Path
) -> None:
    paths = StudyPaths(root=tmp_path)
    placed: dict[Path, tuple[str, int]] = (
        {paths.duplicate(unit, shard, attempt, copy): ("duplicate", copy)}
        if copy
        else {
            paths.shard_records(unit, shard, attempt): ("jsonl.gz", 0),
            paths.shard_meta(unit, shard, attempt): ("meta.json", 0),
        }
    )
    for path, (kind, k) in placed.items():
        name = path.relative_to(tmp_path).as_posix()
        assert is_known(name) and is_known_folder(name.rpartition("/")[0])
        assert shard_at(name) == (unit, attempt, shard, kind, k)


@pytest.mark.parametrize(
    "path",
    ["records/a.b.c/00000.duplicate-1.meta.json", "records/a.b.c/0.jsonl.gz", "records/a/b/00000.jsonl.gz"],
)
def test_what_is_no_place_of_records(path: str) -> None:
    assert shard_at(path) is None


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (".ledger.head.json.77.partial", "ledger.head.json"),
        ("records/a.b.c/.00000.jsonl.gz.77.partial", "records/a.b.c/00000.jsonl.gz"),
        (".protocol.json.77.partial", None),
        ("records/a.b.c/.x.77.partial", None),
        ("records/a.b.c/.00000.jsonl.gz.partial", None),
    ],
)
def test_partials_belong_to_known_places(path: str, target: str | None) -> None:
    assert partial_of(path) == target


def test_walking_sees_links_as_links_and_leaves_report_alone(tmp_path: Path) -> None:
    root = tmp_path / "s"
    (root / "report").mkdir(parents=True)
    (root / "report" / "page.html").write_text("")
    (root / "d").mkdir()
    (root / "d" / "f").write_text("")
    (root / ".ledger.jsonl.5.partial").write_text("")
    (root / "to-folder").symlink_to(tmp_path)
    (root / "nowhere").symlink_to("missing")
    os.mkfifo(root / "pipe")
    tree = walk(StudyPaths(root=root))
    assert tree.files == (".ledger.jsonl.5.partial", "d/f")
    assert tree.folders == ("d",)
    assert tree.odd == {
        "to-folder": "a link",
        "nowhere": "a link",
        "pipe": "neither a file nor a folder",
    }
    assert leftovers(StudyPaths(root=root)) == [root / ".ledger.jsonl.5.partial"]


def test_a_name_that_is_not_text_is_odd_and_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    os.close(os.open(os.fsencode(tmp_path / "s") + b"/\xff", os.O_CREAT))
    (odd,) = walk(StudyPaths(root=tmp_path / "s")).odd.items()
    assert odd == ("'\\udcff'", "a name that is not UTF-8")
    odd[0].encode()


def test_a_linked_report_folder_is_not_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "report").symlink_to(tmp_path)
    assert walk(StudyPaths(root=tmp_path / "s")).odd == {"report": "a link"}


def test_reading_names_the_file_as_it_was_listed(tmp_path: Path) -> None:
    with pytest.raises(VerificationFailed, match="missing") as caught:
        read_in(tmp_path, "a/b")
    assert caught.value.where == "a/b"
    (tmp_path / "one").write_text("x")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    with pytest.raises(VerificationFailed, match="hard link"):
        read_in(tmp_path, "two")


def test_the_harness_digest_is_over_sorted_paths_and_digests() -> None:
    files = {"b.py": b"2", "a/c.py": b"1"}
    lines = b"a/c.py\0%s\nb.py\0%s\n" % (
        hashlib.sha256(b"1").hexdigest().encode(),
        hashlib.sha256(b"2").hexdigest().encode(),
    )
    assert harness_digest(files) == hashlib.sha256(lines).hexdigest()
    assert harness_digest({**files, "a/c.py": b"3"}) != harness_digest(files)


def test_sealed_code_holds_the_harness_its_build_and_the_schemas() -> None:
    code = sealed_code(["plain"])
    assert "harness/worker.py" in code
    assert "harness/builds/plain/build.json" in code
    assert "schemas/v1/protocol.schema.json" in code
    assert not any("hf-" in name or "__pycache__" in name for name in code)
    sealed = sealed_harness({f"code/{name}": data for name, data in code.items()})
    assert sealed == harness_files()
    assert harness_digest(sealed) == harness_digest()


def test_an_unknown_build_is_named() -> None:
    with pytest.raises(UsageError, match="no engine build 'nope'"):
        sealed_code(["nope"])


def test_the_model_is_sealed_where_the_harness_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "builds" / "b").mkdir(parents=True)
    (tmp_path / "worker.py").write_text("import os\n")
    monkeypatch.setattr("prereg.store.harness.harness_root", lambda: tmp_path)
    assert not any(name.startswith("prereg/") for name in sealed_code(["b"]))
    (tmp_path / "oracle.py").write_text("from prereg.model.law import Outcome\n")
    code = sealed_code(["b"])
    assert {"prereg/__init__.py", "prereg/model/law.py"} <= code.keys()
    assert "prereg/errors.py" not in code
