"""Models for Transformers: tiny Llama ones (`harness.adapters.tiny_weights`), and trained checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from harness.adapters import hf_checkpoint
from harness.adapters.checkpoint import is_checkpoint, verified
from harness.adapters.hf_intercept import Probe, observed
from harness.adapters.tiny_weights import check as check
from harness.adapters.tiny_weights import digest, parameter
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A model and what goes with it."""

    model: Any
    tokenizer: Any
    digest: str
    size: int
    """Tokens of the vocabulary: the width of a row."""

    ends: tuple[int, ...]
    """End tokens, the first of which also pads."""

    context: int


def load(spec: Mapping[str, Any], probe: Probe) -> Loaded:
    """Make or read the model of `spec`, observed by `probe`. Raises `JobError`."""
    if not is_checkpoint(spec):
        built, name = build(spec, observed(LlamaForCausalLM, probe))
        return Loaded(
            model=built,
            tokenizer=tokenizer(spec),
            digest=name,
            size=len(spec["vocab"]),
            ends=(spec["eos"],),
            context=spec["context"],
        )
    path = verified(spec)
    model = hf_checkpoint.model(path)
    model.__class__ = observed(type(model), probe)
    return Loaded(
        model=model,
        tokenizer=hf_checkpoint.tokenizer(path),
        digest=spec["sha256"],
        size=model.config.get_text_config().vocab_size,
        ends=hf_checkpoint.ends(model),
        context=hf_checkpoint.context(model),
    )


def tokenizer_of(spec: Mapping[str, Any]) -> Any:
    """The tokenizer of `spec` alone. Raises `JobError`."""
    if is_checkpoint(spec):
        return hf_checkpoint.tokenizer(verified(spec))
    check(spec)
    return tokenizer(spec)


def build(spec: Mapping[str, Any], base: type[Any] = LlamaForCausalLM) -> tuple[Any, str]:
    """Make the model of `spec` as an instance of `base`; return it and its digest (`tiny_weights.digest`)."""
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
    values = {name: parameter(spec, name, tuple(held.shape)) for name, held in model.named_parameters()}
    with torch.no_grad():
        for name, held in model.named_parameters():
            held.copy_(torch.from_numpy(values[name]))
    return model, digest(spec, values)


def check_assistant(spec: Mapping[str, Any], main: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) a draft model that is no tiny-llama or has another vocabulary than `main`."""
    if is_checkpoint(main):
        raise JobError(UNSUPPORTED, "a checkpoint takes the drafter prompt-lookup")
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
