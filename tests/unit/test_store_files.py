"""Files are written whole, and never through a name that somebody else planted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prereg.store.files import write_whole


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
