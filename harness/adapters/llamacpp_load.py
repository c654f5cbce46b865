"""Models for llama-cpp-python: tiny ones (`harness.adapters.llamacpp_model`), and trained checkpoints.

A checkpoint is a GGUF file, as it is: the engine computes with the weights as the file has them, quantised or
not, in one thread and with keys and values kept as float32. Its end tokens are all that the engine itself
takes for an end of generation; `eos` is the one that the file names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp

from harness.adapters import llamacpp_model
from harness.adapters.checkpoint import is_checkpoint, short, verified
from harness.adapters.llamacpp_model import PADDED
from harness.adapters.tiny_weights import check
from harness.wire import BAD_REQUEST, JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is known of a model before its weights are made or read."""

    spec: Mapping[str, Any]
    path: Path | None
    """The file of a checkpoint; a tiny model is written when it is opened."""

    vocab: tuple[str, ...]
    """Each token's text; where its bytes are not whole letters, with a mark in their place."""

    eos: int
    ends: frozenset[int]
    context: int
    """The longest sequence that the model takes."""

    def load(self, places: int, drafters: tuple[Any, ...], logits_all: bool) -> tuple[list[Any], str]:
        """The engine on it with room for `places` tokens, once with each of `drafters`; and the digest.

        Raises `JobError` (bad-request) if there is no room, or the engine cannot read the file.
        """
        if places - 1 > self.context or (self.path is None and places > llamacpp_model.padded(self.spec)):
            raise JobError(BAD_REQUEST, "prompt and horizon are longer than the model's context")
        if self.path is None:
            return llamacpp_model.load(self.spec, drafters, logits_all)
        context = -(-places // PADDED) * PADDED
        try:
            return llamacpp_model.engines(self.path, context, drafters, logits_all), self.spec["sha256"]
        except (ValueError, RuntimeError) as error:
            raise _unreadable(error) from error


def describe(spec: Mapping[str, Any]) -> Described:
    """What is known of the model of `spec`. Raises `JobError` (bad-request)."""
    if is_checkpoint(spec):
        return _checkpoint(spec)
    check(spec)
    return Described(
        spec=spec,
        path=None,
        vocab=tuple(spec["vocab"]),
        eos=spec["eos"],
        ends=frozenset([spec["eos"]]),
        context=spec["context"],
    )


def tokenize(spec: Mapping[str, Any], text: str) -> list[int]:
    """The token ids of a text; nothing is added to it, and what it has of special tokens are those.

    Raises `JobError` (bad-request).
    """
    if not is_checkpoint(spec):
        raise JobError(BAD_REQUEST, "a tiny model's prompt is token ids: its tokens are letters")
    held = _vocabulary(verified(spec))
    try:
        return [int(token) for token in held.tokenize(text.encode(), add_bos=False, special=True)]
    except RuntimeError as error:
        raise JobError(BAD_REQUEST, f"the text cannot be tokenized: {short(error)}") from error


def _checkpoint(spec: Mapping[str, Any]) -> Described:
    path = verified(spec)
    held = _vocabulary(path)
    size, eos = held.n_vocab(), held.token_eos()
    if eos < 0:
        raise JobError(BAD_REQUEST, "model.path: the checkpoint names no end token")
    vocab = held._model.vocab
    architecture = held.metadata.get("general.architecture", "")
    return Described(
        spec=spec,
        path=path,
        vocab=tuple(_text(held, token) for token in range(size)),
        eos=eos,
        ends=frozenset(t for t in range(size) if llama_cpp.llama_vocab_is_eog(vocab, t)) | {eos},
        # Where the file does not say, as good as no bound.
        context=int(held.metadata.get(f"{architecture}.context_length", 2**31)),
    )


def _vocabulary(path: Path) -> Any:
    """The engine on a file without its weights."""
    try:
        return llama_cpp.Llama(model_path=str(path), vocab_only=True, n_ctx=PADDED, verbose=False)
    except (ValueError, RuntimeError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> JobError:
    return JobError(BAD_REQUEST, f"model.path: the engine cannot read it: {short(error)}")


def _text(held: Any, token: int) -> str:
    text: str = held.detokenize([token], special=True).decode("utf-8", "replace")
    return text
