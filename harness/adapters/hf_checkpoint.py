"""Trained checkpoints for Transformers: a folder, or a GGUF file, as a float32 model for evaluation.

The checkpoint's own `generation_config` counts, as it does for whoever calls `generate()`, except where
`hf_features.SAMPLING` or the configuration says otherwise; its end tokens are all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.wire import BAD_REQUEST, JobError

KIND = "checkpoint"
FIELDS = frozenset({"kind", "path", "sha256"})


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


def tokenizer(path: Path) -> Any:
    """The checkpoint's tokenizer. Raises `JobError` if it has none that can be read."""
    folder, arguments = _source(path)
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, **arguments)
    except Exception as error:
        raise JobError(BAD_REQUEST, f"model.path: no tokenizer can be read: {_short(error)}") from error


def model(path: Path) -> Any:
    """The checkpoint's model, float32. Raises `JobError` if the engine cannot read it."""
    folder, arguments = _source(path)
    try:
        found = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, **arguments
        )
    except MemoryError:
        raise
    except Exception as error:
        raise JobError(BAD_REQUEST, f"model.path: the engine cannot read it: {_short(error)}") from error
    return found.eval()


def ends(model: Any) -> tuple[int, ...]:
    """The end tokens that `generate()` would stop at. Raises `JobError` if there is none."""
    given = model.generation_config.eos_token_id
    given = model.config.eos_token_id if given is None else given
    if given is None:
        raise JobError(BAD_REQUEST, "model.path: the checkpoint names no end token")
    return tuple(given) if isinstance(given, list) else (int(given),)


def context(model: Any) -> int:
    """The longest sequence that the model takes; where it does not say, as good as none."""
    return int(getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**31)


def _source(path: Path) -> tuple[str, dict[str, Any]]:
    return (str(path), {}) if path.is_dir() else (str(path.parent), {"gguf_file": path.name})


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"
