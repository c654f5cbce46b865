"""The configuration that an assertion is about: an engine, a tiny model, a prompt, features, a drafter."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.errors import UsageError

ENGINES: Mapping[str, str] = {"hf": "transformers", "llamacpp": "llama_cpp"}
"""Adapters, each with the package that its engine is imported as."""

STOPPING: Mapping[str, str] = {"hf": "stopping", "llamacpp": "stopping_criteria"}
"""The feature that takes stopping criteria, by adapter."""

SEED, RANGE = "2198", 0.4
"""The tiny model's weights, unless another model is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is walked."""

    configuration: dict[str, Any]
    model: dict[str, Any]
    prompt: list[int]
    where: str | Path
    """The build's name, or the interpreter whose environment has the engine."""

    without: Mapping[str, Mapping[str, Any]]
    """What the assertion is about, each with the features that are left without it: the caller's own classes
    (`processor`, `stopping`), or the engine's features where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the caller said; None where they said nothing."""

    build: str | None
    engine: str | None
    features: Mapping[str, Any]
    processors: Sequence[Mapping[str, Any]]
    stopping: Sequence[Mapping[str, Any]]
    drafter: str | Mapping[str, Any] | None
    model: Mapping[str, Any] | None
    prompt: str | Sequence[int] | None
    horizon: int | None


def case_of(given: Given) -> Case:
    """The case with the blanks filled in. Raises UsageError."""
    from prereg.draft.rules import tiny

    engine = given.engine or _engine(given.build)
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}", next_step=f"one of: {', '.join(ENGINES)}")
    default = tiny(engine, SEED, RANGE)
    model = dict(given.model or default.model)
    prompt = _prompt(default.prompt if given.prompt is None else given.prompt, model)
    features = dict(given.features)
    own = (("processor", "processors", given.processors), ("stopping", STOPPING[engine], given.stopping))
    about: dict[str, str] = {}
    for what, name, entries in own:
        if entries:
            features[name] = [*features.get(name, []), *map(dict, entries)]
            about[what] = name
    without = {what: _without(name, features, given) for what, name in about.items()} or {
        name: {key: value for key, value in features.items() if key != name} for name in features
    }
    configuration: dict[str, Any] = {
        "id": "test",
        "role": "probe",
        "about": "an assertion in a test suite",
        "build": given.build or "own",
        "adapter": engine,
        "model": "tiny",
        "prompt": "prompt",
        "horizon": default.horizon if given.horizon is None else given.horizon,
        "features": features,
        "drafter": _drafter(given.drafter, default.drafter, model),
        "predicates": [],
        "command": None,
    }
    # Not resolved: the path of a virtual environment's interpreter is what makes it one.
    where = Path(sys.executable) if given.build is None else given.build
    return Case(configuration=configuration, model=model, prompt=prompt, where=where, without=without)


def _without(name: str, features: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """The features without the caller's own class, but with others that they gave beside it."""
    rest = {key: value for key, value in features.items() if key != name}
    return rest | ({name: given.features[name]} if name in given.features else {})


def _engine(build: str | None) -> str:
    if build is not None:
        from prereg.collect.runtime import load_build

        return load_build(build).adapter
    found = [name for name, package in ENGINES.items() if importlib.util.find_spec(package) is not None]
    if len(found) == 1:
        return found[0]
    which = f"both {' and '.join(found)}" if found else f"none of {', '.join(ENGINES.values())}"
    raise UsageError(
        f"the environment that runs the tests has {which}",
        where=sys.executable,
        next_step="name one: engine='hf'"
        if found
        else "install an engine, or name a build: build='hf-5.17.0'",
    )


def _prompt(given: str | Sequence[int], model: Mapping[str, Any]) -> list[int]:
    vocabulary: list[str] = model["vocab"]
    try:
        tokens = [vocabulary.index(letter) for letter in given] if isinstance(given, str) else list(given)
    except ValueError:
        raise UsageError(
            f"the prompt {given!r} has a letter that the model has not",
            next_step=f"letters of {''.join(v for v in vocabulary if len(v) == 1)}",
        ) from None
    return tokens


def _drafter(
    given: str | Mapping[str, Any] | None, lookup: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Any]:
    if given is None or given == lookup["kind"]:
        return dict(lookup)
    if given == "assistant":
        # Another model of the same kind: a drafter that agrees with the main model would prove little.
        other = {**model, "seed": str(int(model["seed"]) + 1)}
        return {"kind": given, "model": other, "max_tokens": 2}
    if isinstance(given, str):
        raise UsageError(f"there is no drafter {given!r}", next_step=f"{lookup['kind']} or assistant")
    return dict(given)
