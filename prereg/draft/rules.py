"""What a configuration brings with it by itself: the template's tiny model, and the documented rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prereg.errors import UsageError
from prereg.model.law import MaxTokens, NoEarlyEnd, NothingAfter, Predicate


def tiny_model(seed: str, initializer_range: float) -> dict[str, Any]:
    """The tiny model of the template `conformance` with other weights. Raises UsageError for a bad seed."""
    if not re.fullmatch(r"0|[1-9][0-9]{0,18}", seed):
        raise UsageError(f"{seed!r} is no seed: decimal digits", where="--model-seed", next_step="2198")
    template = Path(__file__).parent / "templates" / "conformance" / "protocol.json"
    model: dict[str, Any] = json.loads(template.read_bytes())["models"]["tiny"]
    return {**model, "seed": seed, "initializer_range": initializer_range}


def documented_rules(
    features: Mapping[str, Any], horizon: int, prompt: Sequence[int], model: Mapping[str, Any]
) -> list[Predicate]:
    """The predicates that these parameters of the engine bring with them, by its documentation."""
    vocabulary: list[str] = model["vocab"]
    found = [
        Predicate(
            id="horizon",
            statement="No more than max_new_tokens tokens are returned.",
            source="max_new_tokens",
            rule=MaxTokens(n=horizon),
        )
    ]
    least = features.get("min_new_tokens")
    if isinstance(least, int):
        found.append(
            Predicate(
                id="no-early-end",
                statement="The end token is not among the first min_new_tokens tokens.",
                source="min_new_tokens",
                rule=NoEarlyEnd(n=least, end=(model["eos"],)),
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
