"""The verified bytes of a study, laid out for workers: nothing is read from the study's folder again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A private folder that lasts as long as a run."""

    study: Path
    """The sealed files, at their sealed names, read-only."""
    scratch: Path
    """Where workers may write."""

    @property
    def code(self) -> Path:
        """The folder that holds the sealed `harness/`."""
        return self.study / "code"


BYTE_CODE = ".byte-code"
"""Folder in a stage's scratch: what the run's workers compile, and all byte code that they execute."""
PREFIX = "prereg-collect-"
LOCK = ".lock"
"""Held as long as the run lives; a folder whose lock is free was left by a run that was killed."""


@contextlib.contextmanager
def staged(files: Mapping[str, bytes], executable: frozenset[str] = frozenset()) -> Iterator[Stage]:
    """Write `files` (by path relative to the study) into a private folder, and remove it at the end.

    What killed runs of the same user left is removed first.
    """
    _sweep(Path(tempfile.gettempdir()))
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(root / ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (root / ".new").rename(root / LOCK)  # nobody finds it free
        stage = Stage(study=root / "study", scratch=root / "scratch")
        stage.scratch.mkdir(mode=0o700)
        stage.study.mkdir()
        for name, data in files.items():
            path = stage.study / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o555 if name in executable else 0o444)
        folders = [stage.study, *(p for p in stage.study.rglob("*") if p.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        yield stage
    finally:
        _remove(root)
        os.close(lock)


def _remove(root: Path) -> None:
    for folder in [root / "study", *(p for p in (root / "study").rglob("*") if p.is_dir())]:
        with contextlib.suppress(OSError):
            folder.chmod(0o700)
    shutil.rmtree(root, ignore_errors=True)


def _sweep(place: Path) -> None:
    """Remove the staged folders in `place` that are ours and whose run is gone."""
    for root in place.glob(f"{PREFIX}*"):
        try:
            found = root.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                continue
            fd = os.open(root / LOCK, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # another user's, or not yet locked, or gone
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            _remove(root)
        finally:
            os.close(fd)
