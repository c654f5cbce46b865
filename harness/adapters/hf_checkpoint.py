"""Trained checkpoints for Transformers: a folder, or a GGUF file, as a float32 model for evaluation.

The checkpoint's own `generation_config` counts, as it does for whoever calls `generate()`, except where
`hf_features.SAMPLING` or the configuration says otherwise; its end tokens are all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.adapters.checkpoint import short
from harness.wire import BAD_REQUEST, JobError


def tokenizer(path: Path) -> Any:
    """The checkpoint's tokenizer. Raises `JobError` if it has none that can be read."""
    folder, arguments = _source(path)
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, **arguments)
    except Exception as error:
        raise JobError(BAD_REQUEST, f"model.path: no tokenizer can be read: {short(error)}") from error


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
        raise JobError(BAD_REQUEST, f"model.path: the engine cannot read it: {short(error)}") from error
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
