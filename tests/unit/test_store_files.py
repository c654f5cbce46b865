"""Files are written whole, and never through a name that somebody else planted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prereg.errors import VerificationFailed
from prereg.seal.packing import BadShard, pack, unpack_untold
from prereg.store import files
from prereg.store.files import MAX_FILE, read_once, write_whole


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "file"])
def test_what_has_the_name_of_the_temporary_file_is_not_written_through(tmp_path: Path, kind: str) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    planted = folder / f".a.json.{os.getpid()}.partial"
    if kind != "dangling link":
        other.write_bytes(b"precious")
    if kind == "hard link":
        planted.hardlink_to(other)
    elif kind == "file":
        planted.write_bytes(b"what a killed run of the same number left, longer than the new bytes")
    else:
        planted.symlink_to(other)
    write_whole(folder / "a.json", b"new")
    assert (folder / "a.json").read_bytes() == b"new"
    assert not (folder / "a.json").is_symlink()
    assert [p.name for p in folder.iterdir()] == ["a.json"]
    assert (other.read_bytes() if other.exists() else None) == (
        None if kind == "dangling link" else b"precious"
    )


def test_a_link_at_the_place_itself_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"precious")
    (tmp_path / "a.json").symlink_to("other")
    write_whole(tmp_path / "a.json", b"new")
    assert (tmp_path / "other").read_bytes() == b"precious"
    assert (tmp_path / "a.json").read_bytes() == b"new" and not (tmp_path / "a.json").is_symlink()


def test_no_file_has_more_than_256_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of docs/formats.md section 1, and a longer file is refused before it is read."""
    assert MAX_FILE == 2**28
    (tmp_path / "long").touch()
    os.truncate(tmp_path / "long", MAX_FILE + 1)
    monkeypatch.setattr(files.os, "fdopen", unread)
    with pytest.raises(VerificationFailed, match="is larger than 268435456 bytes"):
        read_once(tmp_path / "long")


def unread(fd: int, mode: str) -> object:
    """A file that must not be read."""

    class Unread:
        def __enter__(self) -> object:
            return object()

        def __exit__(self, *_: object) -> None:
            os.close(fd)

    return Unread()


def test_no_shard_unpacks_to_more_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, more = pack(b"x" * 1000).data, pack(b"x" * 1001).data
    monkeypatch.setattr("prereg.seal.packing.MAX_FILE", 1000)
    assert unpack_untold(whole, "here") == b"x" * 1000
    with pytest.raises(BadShard, match="at most 1000 bytes"):
        unpack_untold(more, "here")
    with pytest.raises(BadShard, match="too large") as caught:
        pack(b"x" * 1001)
    assert caught.value.next_step == "lower shard_requests"
