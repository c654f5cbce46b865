"""Tiny Llama models (`harness.adapters.tiny_weights`) as GGUF files, and the engine opened on them.

The weights are those that the same description has in Transformers, so that both engines compute the same
logits, up to rounding: rows of the query and key projections stand in the order that this engine's rotary
embedding wants, as the usual conversion puts them.

A tokenizer of the kind `llama` falls back on the ids 0, 1 and 2 for its unknown, begin and end tokens if the
file names none. Here these would be letters, and token 2 would end every completion. So the description's end
token is named for all of them (and for padding), nothing is added to a prompt, and no space is put in front.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import numpy.typing as npt

from harness.adapters.tiny_weights import check, digest, parameter
from harness.wire import BAD_REQUEST, JobError

EPSILON = 1e-6
ROPE_BASE = 10_000.0
"""What Transformers takes for such a model unless told otherwise."""

PADDED = 256
"""The engine rounds a context up to a multiple of this, but llama-cpp-python's own buffer does not follow."""

BLOCK: Mapping[str, str] = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
"""Parameters of a layer: name in Transformers and in GGUF."""

Values = npt.NDArray[np.float32]


def parameters(spec: Mapping[str, Any]) -> dict[str, Values]:
    """Every parameter by its name in Transformers, float32 of (rows, columns) or (rows,)."""
    hidden, wide, vocab = spec["hidden"], spec["intermediate"], len(spec["vocab"])
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocab, hidden),
        "model.norm.weight": (hidden,),
        "lm_head.weight": (vocab, hidden),
    }
    for layer in range(spec["layers"]):
        for name in BLOCK:
            shape: tuple[int, ...] = (hidden, hidden)
            if name.endswith("layernorm"):
                shape = (hidden,)
            elif name.startswith("mlp."):
                shape = (hidden, wide) if name.endswith("down_proj") else (wide, hidden)
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    return {name: parameter(spec, name, shape) for name, shape in shapes.items()}


def padded(spec: Mapping[str, Any]) -> int:
    """The context that the engine is given: that of `spec`, rounded up."""
    return -(-int(spec["context"]) // PADDED) * PADDED


def write(spec: Mapping[str, Any], path: Path) -> str:
    """Write the model of `spec` as a GGUF file; return its digest (`tiny_weights.digest`).

    Raises `JobError` (bad-request, unsupported) for what is no complete tiny-llama.
    """
    check(spec)
    if spec["hidden"] % (2 * spec["heads"]):
        raise JobError(BAD_REQUEST, "model.hidden is not a multiple of twice model.heads")
    values = parameters(spec)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(padded(spec))
    writer.add_embedding_length(spec["hidden"])
    writer.add_block_count(spec["layers"])
    writer.add_feed_forward_length(spec["intermediate"])
    writer.add_head_count(spec["heads"])
    writer.add_head_count_kv(spec["heads"])
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_dimension_count(spec["hidden"] // spec["heads"])
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_vocab_size(len(spec["vocab"]))
    _tokenizer(writer, spec)
    for name, tensor in _tensors(spec, values):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return digest(spec, values)


def _tokenizer(writer: Any, spec: Mapping[str, Any]) -> None:
    end, count = spec["eos"], len(spec["vocab"])
    kinds = [gguf.TokenType.NORMAL] * count
    kinds[end] = gguf.TokenType.CONTROL
    writer.add_tokenizer_model("llama")
    writer.add_token_list(spec["vocab"])
    writer.add_token_scores([0.0] * count)
    writer.add_token_types([int(kind) for kind in kinds])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id):
        add(end)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


def _tensors(spec: Mapping[str, Any], values: Mapping[str, Values]) -> Iterator[tuple[str, Values]]:
    yield "token_embd.weight", values["model.embed_tokens.weight"]
    for layer in range(spec["layers"]):
        for theirs, ours in BLOCK.items():
            tensor = values[f"model.layers.{layer}.{theirs}.weight"]
            yield f"blk.{layer}.{ours}.weight", _paired(tensor, spec["heads"], ours)
    yield "output_norm.weight", values["model.norm.weight"]
    yield "output.weight", values["lm_head.weight"]


def _paired(tensor: Values, heads: int, name: str) -> Values:
    """Rows of a query or key projection, each head's two halves interleaved: this engine rotates pairs."""
    if name not in ("attn_q", "attn_k"):
        return tensor
    rows, columns = tensor.shape
    halves = tensor.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def load(
    spec: Mapping[str, Any], drafters: tuple[Any, ...], logits_all: bool = False
) -> tuple[list[Any], str]:
    """The engine on the model of `spec`, once with each of `drafters` (None for none); and the digest."""
    with tempfile.TemporaryDirectory(prefix="prereg-gguf-") as folder:
        path = Path(folder) / "model.gguf"
        found = write(spec, path)
        return engines(path, padded(spec), drafters, logits_all), found


def engines(path: Path, context: int, drafters: tuple[Any, ...], logits_all: bool) -> list[Any]:
    """The engine on a GGUF file with a context of so many tokens, once with each of `drafters`.

    `logits_all` keeps the logits of every position, as `logprobs` wants and a drafter brings anyhow.

    One thread, and keys and values kept as float32: kept as float16, a last bit that differs between a token
    evaluated in a block and one evaluated alone could grow a thousandfold. The file is read once, not mapped:
    what becomes of it later is no matter.
    """
    return [
        llama_cpp.Llama(
            model_path=str(path),
            draft_model=drafter,
            n_ctx=context,
            n_batch=context,
            n_threads=1,
            n_threads_batch=1,
            n_gpu_layers=0,
            logits_all=logits_all,
            type_k=llama_cpp.GGML_TYPE_F32,
            type_v=llama_cpp.GGML_TYPE_F32,
            use_mmap=False,
            verbose=False,
        )
        for drafter in drafters
    ]
