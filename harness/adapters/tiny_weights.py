"""Tiny Llama models as data: their description, and weights that are the same on every machine and engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

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


def parameter(spec: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """The values of one parameter of the model `spec`, by its name in Transformers: norms are ones."""
    if name.endswith("norm.weight"):
        return np.ones(shape, dtype=np.float32)
    return weights(spec["seed"], name, shape, float(spec["initializer_range"]))


def digest(spec: Mapping[str, Any], parameters: Mapping[str, npt.NDArray[np.float32]]) -> str:
    """SHA-256 (hex) of the canonical JSON of `spec` and of each parameter in order of name.

    A parameter counts with its name, shape and little-endian bytes.
    """
    canonical = json.dumps(dict(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hashed = hashlib.sha256(canonical.encode("utf-8") + b"\n")
    for name, values in sorted(parameters.items()):
        hashed.update(f"{name} {list(values.shape)}\n".encode())
        hashed.update(values.astype("<f4").tobytes())
    return hashed.hexdigest()
