"""Folders are read without following links, files once, and shards within their bounds."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from audits_tools import ROOT, pack, sha

import audits.load
from audits.fault import Fault, Found
from audits.load import LARGE, Folder, inflate
from audits.seal import check_files


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "s" / "a").mkdir(parents=True)
    (tmp_path / "s" / "a" / "x").write_bytes(b"12345")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(b"secret")
    (tmp_path / "s" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "s" / "file-link").symlink_to(tmp_path / "outside" / "x")
    return Folder(tmp_path / "s")


def test_links_are_listed_and_not_entered(folder: Folder) -> None:
    folder.scan()
    assert {path: entry.kind for path, entry in folder.entries.items()} == {
        "a": "folder", "a/x": "file", "link": "link", "file-link": "link",
    }  # fmt: skip
    folder.close()


@pytest.mark.parametrize("path", ["link/x", "file-link", "a", "a/none", "../outside/x/y"])
def test_what_is_not_a_regular_file_inside_is_not_read(folder: Folder, path: str) -> None:
    with pytest.raises(Fault) as caught:
        folder.read(path)
    assert caught.value.file == path
    folder.close()


def test_a_file_is_read_once(folder: Folder) -> None:
    first = folder.read("a/x")
    (folder.path / "a" / "x").write_bytes(b"other")
    assert folder.read("a/x") is first
    (folder.path / "b").write_bytes(b"1")
    folder.read("b", keep=False)
    with pytest.raises(Fault, match="second time"):
        folder.read("b")
    folder.close()


def test_the_most_bytes_of_a_file_are_those_of_the_page() -> None:
    page = (ROOT / "docs/formats.md").read_text()
    assert "has more than 2^28 bytes" in page and LARGE == 2**28


def test_a_listed_file_longer_than_any_may_be_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever size the manifest gives it."""
    monkeypatch.setattr(audits.load, "LARGE", 5)
    (folder.path / "b").write_bytes(b"123456")
    folder.scan()
    found = Found()
    files = [
        {"path": path, "size": len(data), "mode": "100644", "sha256": sha(data)}
        for path, data in (("a/x", b"12345"), ("b", b"123456"))
    ]
    assert check_files(folder, {"files": files}, found) == {"b"}
    assert str(found.faults[0]) == "b: larger than the 5 bytes it may have"
    folder.close()


def test_a_file_larger_than_it_may_be(folder: Folder) -> None:
    with pytest.raises(Fault, match="larger than the 4 bytes"):
        folder.read("a/x", 4)
    assert folder.read("a/x", 5).data == b"12345"
    folder.close()


def test_a_shard_inflates_to_exactly_its_size() -> None:
    for lines in (b"", b"x\n", b"abc\n" * 100_000):
        assert inflate(pack(lines), len(lines)) == lines
        for size in (len(lines) - 1, len(lines) + 1):
            with pytest.raises(Fault):
                inflate(pack(lines), size)


def test_a_bomb_is_refused_before_and_while_it_inflates() -> None:
    bomb = pack(bytes(50_000_000))
    with pytest.raises(Fault, match="beyond the 100 bytes"):
        inflate(bomb, 100)
    with pytest.raises(Fault, match="cannot hold"):
        inflate(bomb, 2**40)
    with pytest.raises(Fault, match="cannot hold"):
        inflate(pack(b"x"), 10**6)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pack(b"x" * 50, mtime=1), "mtime"),
        (pack(b"x" * 50, level=9), "level 6"),
        (pack(b"x" * 50, level=1), "level 6"),
        (pack(b"x" * 50) + b"\0", "after"),
        (pack(b"x" * 50) + pack(b""), "after"),
        (pack(b"x" * 50)[:-1], "cut short"),
        (pack(b"x" * 50)[:-8] + b"\0" * 4 + pack(b"x" * 50)[-4:], "not a gzip member"),
        (zlib.compress(b"x" * 50), "plain gzip"),
        (b"x" * 50, "plain gzip"),
        (b"\x1f\x8b\x08\x08" + pack(b"x" * 50)[4:], "plain gzip"),
    ],
)
def test_a_member_is_as_the_formats_say(data: bytes, says: str) -> None:
    with pytest.raises(Fault, match=says):
        inflate(data, 50)


def test_the_libraries_own_compress_is_taken() -> None:
    assert inflate(gzip.compress(b"x" * 50, 6, mtime=0), 50) == b"x" * 50
