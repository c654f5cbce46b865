"""What a configuration brings with it by itself: the template's tiny model, and the documented rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.convert import read_authored
from prereg.errors import UsageError
from prereg.model.law import MaxTokens, NoEarlyEnd, NothingAfter, Predicate
from prereg.model.study import Protocol

CONFORMANCE = Path(__file__).parent / "templates" / "conformance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiny:
    """An adapter's tiny model, and what goes with it unless it is said otherwise."""

    model: dict[str, Any]
    prompt: tuple[int, ...]
    horizon: int
    drafter: dict[str, Any]


def tiny(adapter: str, seed: str | None = None, initializer_range: float | None = None) -> Tiny:
    """The template's tiny model of an adapter, or one of other weights. Raises UsageError for a bad seed."""
    if adapter == "llamacpp":
        entry = json.loads((CONFORMANCE / "models.json").read_bytes())[adapter]
        return Tiny(
            model=_reseeded(entry["model"], seed, initializer_range),
            prompt=tuple(entry["prompt"]),
            horizon=int(entry["horizon"]),
            drafter=dict(entry["drafter"]),
        )
    model = tiny_model(seed, initializer_range)
    return Tiny(
        model=model,
        prompt=tuple(model["vocab"].index(letter) for letter in "abcdabcdab"),
        horizon=3,
        drafter={"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 3},
    )


def conformance_protocol(study: str) -> Protocol:
    """The protocol of the template `conformance` under a name, with its blanks."""
    value = json.loads((CONFORMANCE / "protocol.json").read_bytes())
    value["study"] = study
    return read_authored(json.dumps(value).encode(), "protocol", Protocol, where="protocol.json")


def tiny_model(seed: str | None = None, initializer_range: float | None = None) -> dict[str, Any]:
    """The tiny model of the template `conformance`, as `tiny` does."""
    protocol = json.loads((CONFORMANCE / "protocol.json").read_bytes())
    return _reseeded(protocol["models"]["tiny"], seed, initializer_range)


def _reseeded(model: Mapping[str, Any], seed: str | None, initializer_range: float | None) -> dict[str, Any]:
    seed = model["seed"] if seed is None else seed
    initializer_range = model["initializer_range"] if initializer_range is None else initializer_range
    if not re.fullmatch(r"0|[1-9][0-9]{0,18}", seed):
        raise UsageError(f"{seed!r} is no seed: decimal digits", where="--model-seed", next_step="2198")
    return {**model, "seed": seed, "initializer_range": initializer_range}


def documented_rules(
    features: Mapping[str, Any],
    horizon: int,
    prompt: Sequence[int],
    model: Mapping[str, Any],
    ends: Sequence[int] = (),
) -> list[Predicate]:
    """The predicates that these parameters of the engine bring with them, by its documentation.

    `ends` are the end tokens of a model whose description does not name them. A stop string is a rule on
    tokens only where each token is a letter: a checkpoint's has none here.
    """
    vocabulary: list[str] = model.get("vocab", [])
    ends = (model["eos"],) if "eos" in model else tuple(ends)
    found = [
        Predicate(
            id="horizon",
            statement="No more than max_new_tokens tokens are returned.",
            source="max_new_tokens",
            rule=MaxTokens(n=horizon),
        )
    ]
    # Transformers' name, and that of llama-cpp-python's processor.
    name = "min_tokens" if "min_tokens" in features else "min_new_tokens"
    least = features.get(name)
    if isinstance(least, int) and ends:
        found.append(
            Predicate(
                id="no-early-end",
                statement=f"The end token is not among the first {name} tokens.",
                source=name,
                rule=NoEarlyEnd(n=least, end=tuple(ends)),
            )
        )
    stops = features.get("stop_strings") or []
    for i, stop in enumerate([stops] if isinstance(stops, str) else stops):
        if isinstance(stop, str) and stop and all(letter in vocabulary for letter in stop):
            pattern = tuple(vocabulary.index(letter) for letter in stop)
            found.append(
                Predicate(
                    id=f"stop-{i}",
                    statement="No token follows a completed stop string.",
                    source="stop_strings",
                    rule=NothingAfter(pattern=pattern, context=tuple(prompt[-len(pattern) :])),
                )
            )
    return found
