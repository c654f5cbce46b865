"""The verified bytes of a study, laid out for workers: nothing is read from the study's folder again."""

from __future__ import annotations

import contextlib
import shutil
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


@contextlib.contextmanager
def staged(files: Mapping[str, bytes], executable: frozenset[str] = frozenset()) -> Iterator[Stage]:
    """Write `files` (by path relative to the study) into a private folder, and remove it at the end."""
    root = Path(tempfile.mkdtemp(prefix="prereg-collect-"))
    try:
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
        for folder in [root / "study", *(p for p in (root / "study").rglob("*") if p.is_dir())]:
            with contextlib.suppress(OSError):
                folder.chmod(0o700)
        shutil.rmtree(root, ignore_errors=True)
