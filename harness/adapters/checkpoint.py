"""How a trained checkpoint is named, and that its bytes are those that were named; for every engine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.wire import BAD_REQUEST, JobError

KIND = "checkpoint"
FIELDS = frozenset({"kind", "path", "sha256"})


def is_checkpoint(spec: Mapping[str, Any]) -> bool:
    """Whether it describes a trained checkpoint."""
    return spec.get("kind") == KIND


def check(spec: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) what is no complete description of a checkpoint that is there."""
    for name in sorted(spec.keys() ^ FIELDS):
        raise JobError(BAD_REQUEST, f"model.{name} is {'unknown' if name in spec else 'missing'}")
    path, wanted = spec["path"], spec["sha256"]
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise JobError(BAD_REQUEST, "model.path is no absolute path")
    if not isinstance(wanted, str) or not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise JobError(BAD_REQUEST, "model.sha256 is no digest")
    if not Path(path).exists():
        raise JobError(BAD_REQUEST, f"model.path: there is no {path}")


def digest(path: Path) -> str:
    """SHA-256 of a file; of a folder, over one `<path>\\0<sha256>\\n` for each file below it, by path."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(found.relative_to(path).as_posix() for found in path.rglob("*") if found.is_file())
    lines = "".join(f"{name}\0{digest(path / name)}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()


def verified(spec: Mapping[str, Any]) -> Path:
    """The path of a checkpoint whose bytes are those that were named. Raises `JobError`."""
    check(spec)
    path = Path(spec["path"])
    found = digest(path)
    if found != spec["sha256"]:
        raise JobError(BAD_REQUEST, f"model.sha256: {path} has the digest {found}")
    return path


def short(error: Exception) -> str:
    """An engine's complaint in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"
