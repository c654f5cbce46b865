"""The folder that workers run in: private, gone at the end, and swept after a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from prereg.collect.staging import PREFIX, staged

FILES = {"code/harness/a.py": b"x", "command": b"y"}
HELD = """
import sys, time
from prereg.collect.staging import staged
with staged({"code/harness/a.py": b"x"}) as stage:
    print(stage.study.parent, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def held(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HELD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_at_the_end(place: Path) -> None:
    with staged(FILES, frozenset({"command"})) as stage:
        assert (stage.code / "harness" / "a.py").read_bytes() == b"x"
        assert os.access(stage.study / "command", os.X_OK)
    assert list(place.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_a_living_run_keeps_its_own(place: Path) -> None:
    dead, left = held(place)
    living, kept = held(place)
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait(30)
        assert left.is_dir() and left.name.startswith(PREFIX)
        with staged(FILES):
            assert not left.exists()
            assert (kept / "study" / "code" / "harness" / "a.py").read_bytes() == b"x"
    finally:
        living.communicate("", timeout=30)
        dead.communicate(timeout=30)
    assert list(place.iterdir()) == []


def test_a_link_and_a_folder_without_a_lock_are_left_alone(place: Path) -> None:
    other = place / "other"
    other.mkdir()
    (other / ".lock").write_bytes(b"")
    (place / f"{PREFIX}link").symlink_to(other)
    (place / f"{PREFIX}new").mkdir()
    with staged(FILES):
        pass
    assert sorted(p.name for p in place.iterdir()) == ["other", f"{PREFIX}link", f"{PREFIX}new"]
    assert (other / ".lock").exists()
