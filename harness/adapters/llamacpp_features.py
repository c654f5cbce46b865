"""A configuration's features, as arguments of `Llama.generate()` or `Llama.create_completion()`.

`api` names the method (`generate` unless given). Every other feature is one of that method's own parameters,
by its own name in the installed version, except for these:
- `grammar`: the text of a GBNF grammar;
- `min_tokens`: n, for the library's `MinTokensLogitsProcessor(n, end token)`;
- `processors`: a list of `{"file", "class", "arguments"}` (`harness.adapters.custom`) or
  `{"builtin": "prefix-parity"}`, called in that order, after `min_tokens`;
- `stopping_criteria`: a list of `{"file", "class", "arguments"}` or `{"builtin": "last-id", "token"}`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import llama_cpp
from llama_cpp.llama import MinTokensLogitsProcessor

from harness.adapters import custom
from harness.adapters.llamacpp_lastid import LastId
from harness.adapters.llamacpp_parity import PrefixParity
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

GENERATE = "generate"
COMPLETION = "create_completion"
TEMPERATURE: Mapping[str, str] = {GENERATE: "temp", COMPLETION: "temperature"}
"""The methods that a configuration may call, each with its name for the temperature."""

SAMPLING: Mapping[str, Any] = {
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
}
"""With temperature 1, sampling from the model's own distribution, unless a feature says otherwise."""

FIXED = frozenset(["self", "tokens", "prompt", "max_tokens", "seed", "reset", "logits_processor"])
"""Set from the configuration's prompt, horizon and processors, and from the draw's seed."""

RETURN_MAP = frozenset(["suffix", "echo", "stream", "model"])
"""Would change what is returned, not how it is drawn."""

BUILTIN: Mapping[str, Callable[[], Any]] = {"prefix-parity": PrefixParity}

DRAFTER: Mapping[str, frozenset[str]] = {"prompt-lookup": frozenset({"kind", "max_ngram", "max_tokens"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What every request of a configuration is called with."""

    api: str
    arguments: Mapping[str, Any]
    """As they are, the same for every request."""

    processors: tuple[Callable[[], Any], ...]
    """Each makes a new processor."""

    stopping: tuple[Callable[[], Any], ...]
    """Each makes a new stopping criterion."""

    def value(self, name: str, default: Any = None) -> Any:
        """An argument, by the method's own name or `temperature`."""
        return self.arguments.get(TEMPERATURE[self.api] if name == "temperature" else name, default)

    def fresh(self) -> list[Any]:
        """New processors, in the order in which they are called."""
        return [make() for make in self.processors]

    def criteria(self) -> list[Any]:
        """New stopping criteria."""
        return [make() for make in self.stopping]


def read(features: Mapping[str, Any], eos: int) -> Features:
    """Check `features`; `JobError` names one that this engine cannot take."""
    api = features.get("api", GENERATE)
    if api not in TEMPERATURE:
        raise JobError(BAD_REQUEST, f"features.api is not one of: {', '.join(TEMPERATURE)}")
    known = frozenset(inspect.signature(getattr(llama_cpp.Llama, api)).parameters)
    arguments: dict[str, Any] = {**SAMPLING, TEMPERATURE[api]: 1.0}
    processors: list[Callable[[], Any]] = []
    stopping: tuple[Callable[[], Any], ...] = ()
    for name, value in features.items():
        if name in ("api", "min_tokens", "processors"):
            continue
        if name in FIXED:
            raise JobError(BAD_REQUEST, f"features.{name} is not for a configuration to set")
        if name not in known:
            raise JobError(BAD_REQUEST, f"features.{name}: {api}() of this engine has no such parameter")
        if name in RETURN_MAP:
            raise JobError(UNSUPPORTED, f"features.{name} is not supported by this adapter")
        if name == "stopping_criteria":
            stopping = _stopping(value, f"features.{name}")
        elif name == "grammar":
            arguments[name] = _grammar(value)
        elif name == "logit_bias":
            arguments[name] = _logit_bias(value)
        elif name == "stop":
            arguments[name] = _stop(value)
        elif isinstance(value, bool) != (name == "penalize_nl") or not isinstance(value, int | float):
            raise JobError(BAD_REQUEST, f"features.{name} has the wrong type")
        else:
            arguments[name] = value
    if "min_tokens" in features:
        least = features["min_tokens"]
        if not isinstance(least, int) or isinstance(least, bool) or least < 0:
            raise JobError(BAD_REQUEST, "features.min_tokens is not a nonnegative integer")
        processors.append(lambda: MinTokensLogitsProcessor(least, eos))
    processors.extend(_processors(features.get("processors", [])))
    return Features(api=api, arguments=arguments, processors=tuple(processors), stopping=stopping)


def _processors(given: Any) -> list[Callable[[], Any]]:
    if not isinstance(given, list):
        raise JobError(BAD_REQUEST, "features.processors is not a list")
    found: list[Callable[[], Any]] = []
    for at, entry in enumerate(given):
        if isinstance(entry, dict) and "builtin" in entry:
            make = BUILTIN.get(entry["builtin"]) if len(entry) == 1 else None
            if make is None:
                known = ", ".join(BUILTIN)
                raise JobError(BAD_REQUEST, f"features.processors[{at}] is not a builtin; there is: {known}")
            found.append(make)
        else:
            (loaded,) = custom.load_all([entry], f"features.processors[{at}]")
            found.append(loaded.fresh)
    return found


def _stopping(given: Any, where: str) -> tuple[Callable[[], Any], ...]:
    if not isinstance(given, list):
        raise JobError(BAD_REQUEST, f"{where} is not a list")
    found: list[Callable[[], Any]] = []
    for at, entry in enumerate(given):
        if not isinstance(entry, dict) or "builtin" not in entry:
            (loaded,) = custom.load_all([entry], f"{where}[{at}]")
            found.append(loaded.fresh)
        elif entry["builtin"] == "last-id" and entry.keys() == {"builtin", "token"}:
            found.append(partial(LastId, entry["token"]))
        else:
            raise JobError(BAD_REQUEST, f"{where}[{at}] is not a builtin; there is: last-id, with its token")
    return tuple(found)


def _grammar(value: Any) -> Any:
    if not isinstance(value, str):
        raise JobError(BAD_REQUEST, "features.grammar is not a text")
    return llama_cpp.LlamaGrammar.from_string(value, verbose=False)


def check_grammar(features: Features, engine: Any) -> None:
    """Refuse (`JobError`) a grammar that the engine cannot parse: it would end the process."""
    grammar = features.value("grammar")
    if grammar is None:
        return
    sampler = llama_cpp.llama_sampler_init_grammar(
        engine._model.vocab, grammar._grammar.encode("utf-8"), grammar._root.encode("utf-8")
    )
    if not sampler:
        raise JobError(BAD_REQUEST, "features.grammar: the engine cannot parse it")
    llama_cpp.llama_sampler_free(sampler)


def _logit_bias(value: Any) -> dict[int, float]:
    """JSON has no integer keys: tokens come as decimal strings."""
    try:
        return {int(token): float(bias) for token, bias in value.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise JobError(BAD_REQUEST, f"features.logit_bias is not an object of tokens: {error}") from error


def _stop(value: Any) -> list[str]:
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise JobError(BAD_REQUEST, "features.stop is not a list of nonempty strings")
    return stops


def check_drafter(drafter: Mapping[str, Any]) -> None:
    """Refuse (`JobError`) a drafter that is not a complete prompt lookup."""
    kind = drafter.get("kind")
    fields = DRAFTER.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise JobError(UNSUPPORTED, f"no drafter of kind {kind!r}; there is: {', '.join(DRAFTER)}")
    for name in sorted(drafter.keys() ^ fields):
        raise JobError(BAD_REQUEST, f"drafter.{name} is {'unknown' if name in drafter else 'missing'}")
    for name in fields - {"kind"}:
        value = drafter[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise JobError(BAD_REQUEST, f"drafter.{name} is not a positive integer")
