"""A configuration's features, as Transformers' `GenerationConfig`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    StoppingCriteriaList,
    SynthIDTextWatermarkingConfig,
    WatermarkingConfig,
)

from harness.adapters.custom import Custom, load_all
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

SAMPLING: Mapping[str, Any] = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
"""Plain multinomial sampling from the model's own distribution, unless a feature says otherwise."""

FIXED = frozenset(
    [
        "max_new_tokens",
        "max_length",
        "num_return_sequences",
        "prompt_lookup_num_tokens",
        "max_matching_ngram_size",
        "eos_token_id",
        "pad_token_id",
        "bos_token_id",
    ]
)
"""Set from the configuration's horizon, drafter and model."""

RETURN_MAP = frozenset(["return_dict_in_generate", "output_attentions", "output_hidden_states"])
"""Would change the type of what `generate()` returns."""

RECORDS = frozenset(["output_scores", "output_logits"])
"""Ask for records beside the tokens, which come back in another type; the outcome is the tokens."""

OTHER_MODES = frozenset(
    [
        "num_beams",
        "max_time",
        "use_mtp",
        "assistant_early_exit",
        "is_assistant",
        "use_cache",
        "speculation_type",
    ]
)
"""Leave the sampling loop (which alone is observed), name another drafter, or stop by the clock."""

DRAFTERS: Mapping[str, frozenset[str]] = {
    "prompt-lookup": frozenset({"kind", "max_ngram", "max_tokens"}),
    "assistant": frozenset({"kind", "model", "max_tokens"}),
}
"""Kinds of drafter, each with its fields."""


PROCESSORS, STOPPING = "processors", "stopping"
"""Features that are lists of a user's own classes: arguments of `generate()`, not settings."""


class Fresh(Protocol):
    """What a processor of a configuration is made from: a user's class, or a builtin that is no setting."""

    @property
    def kind(self) -> type[Any]:
        """The processor's class."""
        ...

    def fresh(self) -> Any:
        """A new instance, for one request."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A user's own classes in a configuration, and builtins that the engine takes in the same way."""

    processors: tuple[Fresh, ...]
    stopping: tuple[Custom, ...]

    def arguments(self) -> dict[str, Any]:
        """Arguments of one call of `generate()`: fresh instances, and nothing where there are no classes."""
        given: dict[str, Any] = {}
        if self.processors:
            given["logits_processor"] = LogitsProcessorList(own.fresh() for own in self.processors)
        if self.stopping:
            given["stopping_criteria"] = StoppingCriteriaList(own.fresh() for own in self.stopping)
        return given


def own_classes(features: Mapping[str, Any], tokenizer: Any, size: int, ends: Sequence[int]) -> Own:
    """Load a user's own classes and builtins, for that vocabulary; `JobError` says which cannot be."""
    given = features.get(PROCESSORS, [])
    if not isinstance(given, list) or not any(
        isinstance(entry, dict) and "builtin" in entry for entry in given
    ):
        processors: tuple[Fresh, ...] = load_all(given, f"features.{PROCESSORS}")
    else:
        processors = tuple(
            _processor(entry, f"features.{PROCESSORS}[{at}]", tokenizer, size, ends)
            for at, entry in enumerate(given)
        )
    return Own(processors=processors, stopping=load_all(features.get(STOPPING, []), f"features.{STOPPING}"))


def _processor(entry: Any, where: str, tokenizer: Any, size: int, ends: Sequence[int]) -> Fresh:
    if not isinstance(entry, dict) or "builtin" not in entry:
        (loaded,) = load_all([entry], where)
        return loaded
    if entry["builtin"] != "xgrammar":
        raise JobError(BAD_REQUEST, f"{where} is not a builtin; there is: xgrammar")
    try:
        from harness.adapters.hf_xgrammar import grammar
    except ImportError as error:
        raise JobError(
            UNSUPPORTED, f"{where}: this build has no xgrammar ({error}): take hf-5.17.0-xgrammar-0.2.8"
        ) from error
    return grammar(entry, where, tokenizer, size, ends)


WATERMARKS: Mapping[str, Any] = {"synthid": SynthIDTextWatermarkingConfig, "greenlist": WatermarkingConfig}
"""Kinds of watermark, each with the engine's class of its arguments."""


def known() -> frozenset[str]:
    """The names of all settings of this engine's `GenerationConfig`."""
    return frozenset(name for name in vars(GenerationConfig()) if not name.startswith("_"))


def settings(features: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `GenerationConfig` for `features`; `JobError` names a feature it cannot take.

    `watermarking` is `{"kind": "synthid", "keys", "ngram_len", ...}`; `sequence_bias` a list of
    `[[ids], bias]`; `processors` and `stopping` are no settings (`own_classes`); everything else goes to the
    engine as it is.
    """
    names = known() | {"watermarking"}
    given = dict(SAMPLING)
    for name, value in features.items():
        if name in (PROCESSORS, STOPPING):
            continue
        if name not in names or name == "watermarking_config":
            raise JobError(BAD_REQUEST, f"features.{name}: this engine has no such setting")
        if name in FIXED or name in RETURN_MAP:
            raise JobError(BAD_REQUEST, f"features.{name} is not for a configuration to set")
        if name in OTHER_MODES:
            raise JobError(UNSUPPORTED, f"features.{name} is not supported by this adapter")
        if name == "watermarking":
            given["watermarking_config"] = _watermarking(value)
        elif name == "sequence_bias":
            given[name] = _sequence_bias(value)
        else:
            given[name] = value
    if any(given.get(name) for name in RECORDS):
        given["return_dict_in_generate"] = True
    return given


def _watermarking(value: Any) -> Any:
    kind = value.get("kind") if isinstance(value, dict) else None
    make = WATERMARKS.get(kind) if isinstance(kind, str) else None
    if make is None:
        raise JobError(
            UNSUPPORTED, f"features.watermarking: there are only the kinds {', '.join(WATERMARKS)}"
        )
    arguments = {name: argument for name, argument in value.items() if name != "kind"}
    try:
        return make(**arguments)
    except (TypeError, ValueError) as error:
        raise JobError(BAD_REQUEST, f"features.watermarking: {error}") from error


def _sequence_bias(value: Any) -> Any:
    try:
        return {tuple(ids): float(bias) for ids, bias in value}
    except (TypeError, ValueError) as error:
        raise JobError(
            BAD_REQUEST, f"features.sequence_bias is not a list of [[ids], bias]: {error}"
        ) from error


def generation_config(
    features: Mapping[str, Any],
    horizon: int,
    ends: Sequence[int],
    rows: int,
    drafter: Mapping[str, Any] | None,
) -> Any:
    """The `GenerationConfig` of one kind of request: `rows` draws without a drafter, or one with it."""
    arguments = settings(features) | {
        "max_new_tokens": horizon,
        "eos_token_id": ends[0] if len(ends) == 1 else list(ends),
        # Padding is only ever seen past the end of a row, where the observer's length cuts it off.
        "pad_token_id": ends[0],
        "num_return_sequences": rows,
    }
    if drafter is not None and drafter["kind"] == "prompt-lookup":
        arguments["prompt_lookup_num_tokens"] = drafter["max_tokens"]
        arguments["max_matching_ngram_size"] = drafter["max_ngram"]
    try:
        config = GenerationConfig(**arguments)
        config.validate(strict=True)
    except (TypeError, ValueError) as error:
        raise JobError(BAD_REQUEST, f"the engine refuses the features: {error}") from error
    return config


def check_drafter(drafter: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) a drafter that is neither a complete prompt lookup nor a complete draft model."""
    kind = drafter.get("kind")
    fields = DRAFTERS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise JobError(UNSUPPORTED, f"no drafter of kind {kind!r}; there are: {', '.join(DRAFTERS)}")
    for name in sorted(drafter.keys() ^ fields):
        raise JobError(BAD_REQUEST, f"drafter.{name} is {'unknown' if name in drafter else 'missing'}")
    for name in fields - {"kind", "model"}:
        value = drafter[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise JobError(BAD_REQUEST, f"drafter.{name} is not a positive integer")
    if kind == "assistant" and not isinstance(drafter["model"], dict):
        raise JobError(BAD_REQUEST, "drafter.model is not a model")
