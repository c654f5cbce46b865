"""Tiny Llama models whose weights are the same on every machine, and the tokenizer that goes with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

UNIFORMS = 12
"""16-bit uniforms summed for one weight: their sum has standard deviation 2^16 to within 1e-10."""

FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "kind": str,
    "seed": str,
    "initializer_range": (float, int),
    "vocab": list,
    "eos": int,
    "hidden": int,
    "intermediate": int,
    "layers": int,
    "heads": int,
    "context": int,
}


def check(spec: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) a model that is not a complete tiny-llama."""
    kind = spec.get("kind")
    if kind != "tiny-llama":
        raise JobError(UNSUPPORTED, f"no model of kind {kind!r}; there is: tiny-llama")
    for name in sorted(spec.keys() ^ FIELDS.keys()):
        raise JobError(BAD_REQUEST, f"model.{name} is {'unknown' if name in spec else 'missing'}")
    for name, types in FIELDS.items():
        if not isinstance(spec[name], types) or isinstance(spec[name], bool):
            raise JobError(BAD_REQUEST, f"model.{name} has the wrong type")
    vocab = spec["vocab"]
    if not all(isinstance(token, str) and token for token in vocab) or len(set(vocab)) != len(vocab):
        raise JobError(BAD_REQUEST, "model.vocab is not a list of different nonempty strings")
    if not 0 <= spec["eos"] < len(vocab):
        raise JobError(BAD_REQUEST, "model.eos is not a token of the vocabulary")


def weights(seed: str, name: str, shape: tuple[int, ...], scale: float) -> npt.NDArray[np.float32]:
    """The float32 weights of one parameter: near-normal, mean 0, standard deviation `scale`.

    SHA-256 in counter mode over (seed, name) gives 16-bit integers; the centred sum of twelve of them is an
    integer below 2^19, hence exact in float32 after division by 2^16. One rounding multiplication by
    `scale` follows. No step depends on the machine, its libraries or its random generators.
    """
    count = int(np.prod(shape, dtype=np.int64))
    blocks = -(-count * UNIFORMS * 2 // 32)
    key = f"prereg/tiny-llama/v1\n{seed}\n{name}\n".encode()
    stream = b"".join(hashlib.sha256(key + block.to_bytes(8, "big")).digest() for block in range(blocks))
    words = np.frombuffer(stream, dtype=">u2")[: count * UNIFORMS].reshape(count, UNIFORMS)
    steps = words.sum(axis=1, dtype=np.int64) - UNIFORMS * 65535 // 2
    values: npt.NDArray[np.float32] = (steps.astype(np.float64) / 65536.0 * scale).astype(np.float32)
    return values.reshape(shape)


def build(spec: Mapping[str, Any], base: type[Any] = LlamaForCausalLM) -> tuple[Any, str]:
    """Make the model of `spec` as an instance of `base`; return it and its digest (SHA-256, hex).

    The digest covers the canonical JSON of `spec` and the name, shape and little-endian bytes of every
    parameter in order of name.
    """
    check(spec)
    config = LlamaConfig(
        vocab_size=len(spec["vocab"]),
        hidden_size=spec["hidden"],
        intermediate_size=spec["intermediate"],
        num_hidden_layers=spec["layers"],
        num_attention_heads=spec["heads"],
        num_key_value_heads=spec["heads"],
        max_position_embeddings=spec["context"],
        bos_token_id=None,
        eos_token_id=spec["eos"],
        pad_token_id=spec["eos"],
        tie_word_embeddings=False,
    )
    model = base(config).float().eval()
    canonical = json.dumps(dict(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hashed = hashlib.sha256(canonical.encode("utf-8") + b"\n")
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            shape = tuple(parameter.shape)
            if name.endswith("norm.weight"):
                values = np.ones(shape, dtype=np.float32)
            else:
                values = weights(spec["seed"], name, shape, float(spec["initializer_range"]))
            parameter.copy_(torch.from_numpy(values))
            hashed.update(f"{name} {list(shape)}\n".encode())
            hashed.update(values.astype("<f4").tobytes())
    return model, hashed.hexdigest()


def check_assistant(spec: Mapping[str, Any], main: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) a draft model that is no tiny-llama or has another vocabulary than `main`."""
    check(spec)
    if (spec["vocab"], spec["eos"]) != (main["vocab"], main["eos"]):
        raise JobError(BAD_REQUEST, "drafter.model has another vocabulary or end token than the model")


def assistant(drafter: Mapping[str, Any]) -> Any:
    """The draft model of `drafter`, or None if it has none.

    Its number of proposed tokens is constant and no confidence ends a proposal early: the engine would
    otherwise carry either from one request to the next.
    """
    if drafter["kind"] != "assistant":
        return None
    model, _ = build(drafter["model"])
    model.generation_config.num_assistant_tokens = drafter["max_tokens"]
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0.0
    return model


def tokenizer(spec: Mapping[str, Any]) -> Any:
    """A fast tokenizer over the model's vocabulary, one letter a token; the end token is special."""
    vocab = {token: number for number, token in enumerate(spec["vocab"])}
    end = spec["vocab"][spec["eos"]]
    inner = Tokenizer(models.WordLevel(vocab=vocab, unk_token=end))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=end, pad_token=end, unk_token=end)
