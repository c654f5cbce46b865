"""What the options of `prereg probe` mean: the configuration, its model and prompt, and how far to walk."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.collect.choices import Walk
    from prereg.collect.runtime import Build

WHOLE_RUNS = 50_000
"""Engine runs beyond which a walk without a budget is not begun."""

TINY_TOLERANCE, CHECKPOINT_TOLERANCE = 1e-5, 1e-4
"""Total variation that is the arithmetic of float32: of one layer, and of a trained model's many."""

TINY_SAMPLE, CHECKPOINT_SAMPLE = 24, 4
"""Leaves that each check looks at again: a trained model's run takes a hundred times longer."""

ORACLE_TOLERANCE, CHECKPOINT_ORACLE_TOLERANCE = 1e-6, 1e-4

MARGIN = 4.0
"""Times what was measured of an engine's repeatability, on a few prefixes: others may be worse."""

BUDGET = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>s?)", re.ASCII)

FLOOR_SHARE = 1e-5
"""Paths lighter than this share of the mass budget stay unexplored."""

DEFAULT_FLOOR = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options as they were typed."""

    build: str
    model: str | None
    settings: Sequence[str]
    processor: str | None
    processor_arguments: str | None
    prompt: str | None
    prompt_ids: str | None
    horizon: int | None
    first: int | None
    drafter: str
    model_seed: str | None
    initializer_range: float | None
    budget: Sequence[str]
    """Runs, seconds with an `s`, or both."""
    budget_mass: float | None
    close_floor: float | None
    tolerance: float | None
    processes: int | None
    resume: Path | None
    drawn: bool
    """Draws instead of a walk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What they mean."""

    walk: Walk
    tolerance: float
    horizon: int
    window: int
    """Tokens whose law is asked for."""
    vocabulary: Sequence[str] | None
    """The tiny model's; a checkpoint's is too large to list."""
    is_measured: bool = False
    """Whether the tolerance shall allow for what the engine's repeatability is measured to be."""
    repeatability: Mapping[str, float] | None = None
    """That, once it is known."""

    @property
    def is_checkpoint(self) -> bool:
        """Whether the model is a trained one."""
        return self.vocabulary is None


def read(given: Given) -> Asked:
    """Check the options and put them together. Raises UsageError, or WrongState for a build not made."""
    from prereg.collect.choices import Walk, cores
    from prereg.collect.probe_model import checkpoint
    from prereg.collect.runtime import environment_of, load_build
    from prereg.draft.rules import tiny

    build = load_build(given.build)
    if build.adapter not in ("hf", "llamacpp"):
        raise UsageError(
            f"{build.name} holds no decoding engine", where="--build", next_step="prereg build --list"
        )
    environment_of(build)
    default = tiny(build.adapter, given.model_seed, given.initializer_range)
    model = default.model if given.model is None else checkpoint(given.model, build)
    horizon = _positive(given.horizon, "--horizon") or default.horizon
    first = _positive(given.first, "--first")
    if first is not None and first > horizon:
        raise UsageError(f"there are no {first} tokens within {horizon}", where="--first")
    window = horizon if first is None else first
    features = features_of(given.settings)
    if given.processor is not None:
        features["processors"] = [_processor(given.processor, given.processor_arguments)]
    elif given.processor_arguments is not None:
        raise UsageError("arguments of which processor?", where="--processor-arguments")
    features = _digested(features)
    prompt, text = _prompt(given, default.prompt)
    is_tiny = given.model is None
    if is_tiny:
        prompt, text = _tiny_prompt(prompt, text, model["vocab"]), None
    mass = _share(given.budget_mass, "--budget-mass")
    runs, seconds = _budget(given.budget)
    if not is_tiny and runs is None and seconds is None and mass is None:
        mass = 0.0
    walk = Walk(
        configuration={
            "id": "probe",
            "role": "probe",
            "about": "an exploratory probe",
            "build": build.name,
            "adapter": build.adapter,
            "model": "tiny" if is_tiny else "checkpoint",
            "prompt": "prompt",
            "horizon": horizon,
            "features": features,
            "drafter": _drafter(given.drafter, model, default.drafter, build),
            "predicates": [],
            "command": None,
        },
        model=model,
        prompt=prompt,
        text=text,
        runs=runs,
        seconds=seconds,
        mass=mass,
        close_floor=_floor(given, mass, window, is_tiny),
        first=None if window == horizon else window,
        checks=_checks(is_tiny),
        processes=_positive(given.processes, "--processes") or cores(),
        journal=None if given.resume is None else given.resume.absolute(),
        remember=True,
    )
    if given.close_floor and not walk.bounded and not given.drawn:
        raise UsageError(
            "a walk without a budget walks every path: nothing would stay below the floor",
            where="--close-floor",
            next_step="add --budget-mass 0.01",
        )
    if given.resume is not None and walk.bounded:
        raise UsageError("a walk with a budget is not resumed", where="--resume")
    if given.drawn:
        _check_drawn(given)
    else:
        size = len(model["vocab"]) if is_tiny else None
        _check_size(size, features, window, bool(walk.runs or walk.seconds or mass))
    tolerance = given.tolerance
    if tolerance is None:
        tolerance = TINY_TOLERANCE if is_tiny else CHECKPOINT_TOLERANCE
    if not 0 < tolerance < 1:
        raise UsageError(
            f"{tolerance} is no tolerance: between 0 and 1", where="--tolerance", next_step="1e-5"
        )
    return Asked(
        walk=walk,
        tolerance=tolerance,
        is_measured=not is_tiny and build.adapter == "llamacpp" and given.tolerance is None,
        horizon=horizon,
        window=window,
        vocabulary=model["vocab"] if is_tiny else None,
    )


def tolerant(asked: Asked, repeatability: Mapping[str, float] | None) -> Asked:
    """With tolerances that allow for an engine whose rows depend on how it comes to evaluate a prefix.

    `repeatability` has the largest total variation of two such rows after the prompt, and of two after more
    tokens: a law is off by at most one of them for each of its tokens. None if the engine does not tell.
    """
    rows = repeatability or {"prompt": 0.0, "later": 0.0}
    allowed = MARGIN * (rows["prompt"] + (asked.window - 1) * rows["later"])
    checks = asked.walk.checks
    oracle = max(checks.oracle_tolerance, allowed)
    return replace(
        asked,
        walk=replace(asked.walk, checks=replace(checks, oracle_tolerance=oracle)),
        tolerance=max(asked.tolerance, allowed),
        repeatability=repeatability,
    )


def _check_drawn(given: Given) -> None:
    """Refuse what only a walk takes."""
    options = {
        "--first": given.first,
        "--budget": given.budget or None,
        "--budget-mass": given.budget_mass,
        "--close-floor": given.close_floor,
        "--resume": given.resume,
        "--tolerance": given.tolerance,
    }
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{option} is for a walk, not for draws", where=option, next_step="leave it out")


def _checks(is_tiny: bool) -> Any:
    from prereg.collect.split_checks import Checks

    if is_tiny:
        return Checks(sample=TINY_SAMPLE, oracle_tolerance=ORACLE_TOLERANCE)
    return Checks(
        sample=CHECKPOINT_SAMPLE,
        seeds={"off": ("0",), "on": ("0",)},
        oracle_tolerance=CHECKPOINT_ORACLE_TOLERANCE,
    )


def _prompt(given: Given, default: Sequence[int]) -> tuple[list[int] | None, str | None]:
    """Token ids, or a text for the model's own tokenizer."""
    if given.prompt_ids is not None and given.prompt is not None:
        raise UsageError("a prompt is either text or token ids", where="--prompt-ids")
    if given.prompt_ids is not None:
        try:
            ids = [int(part) for part in given.prompt_ids.split(",")]
        except ValueError:
            ids = [-1]
        if min(ids) < 0:
            raise UsageError(
                f"{given.prompt_ids!r} is not a list of token ids", where="--prompt-ids", next_step="0,1,2"
            )
        return ids, None
    if given.prompt is None:
        if given.model is not None:
            raise UsageError(
                "a checkpoint needs a prompt of its own; one that repeats itself lets prompt lookup propose",
                where="--prompt",
                next_step="--prompt 'one two three one two three one'",
            )
        return list(default), None
    if not given.prompt:
        raise UsageError("an empty prompt", where="--prompt")
    return None, given.prompt


def _tiny_prompt(ids: list[int] | None, text: str | None, vocabulary: Sequence[str]) -> list[int]:
    """Token ids in a tiny model's vocabulary, whose tokens are letters."""
    if text is not None:
        if any(letter not in vocabulary for letter in text):
            raise UsageError(f"{text!r} has other letters than {''.join(vocabulary[:-1])}", where="--prompt")
        return [vocabulary.index(letter) for letter in text]
    found = ids or []
    if not all(token < len(vocabulary) for token in found):
        raise UsageError(f"token ids go from 0 to {len(vocabulary) - 1}", where="--prompt-ids")
    return found


def features_of(settings: Sequence[str]) -> dict[str, Any]:
    """The engine's parameters from `KEY=VALUE`, each value as JSON."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(
                f"{setting!r} is not KEY=VALUE", where="--set", next_step="--set guidance_scale=1.5"
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            raise UsageError(
                f"{text!r} is not JSON", where=f"--set {name}", next_step=f"--set '{name}=\"…\"'"
            ) from None
    return found


def _processor(given: str, arguments: str | None) -> dict[str, Any]:
    place, _, name = given.rpartition(":")
    if not place or not name.isidentifier():
        raise UsageError(
            f"{given!r} is not FILE:CLASS", where="--processor", next_step="--processor mine.py:MyProcessor"
        )
    file = Path(place).absolute()
    if not file.is_file():
        raise UsageError(f"there is no file {file}", where="--processor")
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(
            f"{arguments!r} is not a JSON object",
            where="--processor-arguments",
            next_step="--processor-arguments '{\"bias\": 2.0}'",
        )
    return {"file": str(file), "class": name, "arguments": value}


def _digested(features: Mapping[str, Any]) -> dict[str, Any]:
    """With the digest of each file that holds a user's class: a walk that goes on must have the same."""
    found = dict(features)
    for name in ("processors", "stopping"):
        if isinstance(found.get(name), list):
            found[name] = [_entry(given) for given in found[name]]
    return found


def _entry(given: Any) -> Any:
    if not isinstance(given, dict) or "sha256" in given or not Path(str(given.get("file", ""))).is_file():
        return given  # whatever is wrong with it, the engine's adapter says so
    return {**given, "sha256": hashlib.sha256(Path(given["file"]).read_bytes()).hexdigest()}


def _drafter(kind: str, model: Mapping[str, Any], lookup: Mapping[str, Any], build: Build) -> dict[str, Any]:
    if kind == "prompt-lookup":
        return dict(lookup)
    if kind != "assistant":
        raise UsageError(
            f"there is no drafter {kind!r}", where="--drafter", next_step="prompt-lookup or assistant"
        )
    if "seed" not in model or build.adapter != "hf":
        raise UsageError(
            "only Transformers' tiny model has a draft model to go with it",
            where="--drafter",
            next_step="--drafter prompt-lookup",
        )
    # Another model of the same kind: a drafter that agrees with the main model would prove little.
    other = {**model, "seed": str(int(model["seed"]) + 1)}
    return {"kind": kind, "model": other, "max_tokens": 2}


def _floor(given: Given, mass: float | None, window: int, is_tiny: bool) -> float:
    floor = _share(given.close_floor, "--close-floor")
    if floor is not None:
        return floor
    if is_tiny or window == 1:
        return 0.0
    return mass * FLOOR_SHARE if mass else DEFAULT_FLOOR


def _check_size(size: int | None, features: Mapping[str, Any], window: int, bounded: bool) -> None:
    """Refuse a walk to the end that would not come to one."""
    top = features.get("top_k")
    width = min([n for n in (size, top) if isinstance(n, int) and n > 0], default=None)
    runs = None if width is None else width ** (window - 1)
    if bounded or window == 1 or (runs is not None and runs <= WHOLE_RUNS):
        return
    many = "a whole vocabulary" if runs is None else f"{runs:,} runs"
    raise UsageError(
        f"{many} for each of {window} tokens is too much to walk to the end"
        if runs is None
        else f"{many} or more are too many to walk to the end",
        where="--horizon",
        next_step="--budget-mass 0.05, --budget 500 or --budget 60s; or --first 1",
    )


def _positive(value: int | None, where: str) -> int | None:
    if value is not None and value < 1:
        raise UsageError(f"{value} is not a positive number", where=where)
    return value


def _budget(given: Sequence[str]) -> tuple[int | None, float | None]:
    """Runs and seconds, each None where it is not bounded."""
    runs: int | None = None
    seconds: float | None = None
    for text in given:
        found = BUDGET.fullmatch(text)
        value = 0.0 if found is None else float(found["number"])
        timed = found is not None and found["unit"] == "s"
        if not 0 < value < math.inf or not (timed or value.is_integer()):
            raise UsageError(
                f"{text!r} is no budget: runs as a whole number, or seconds",
                where="--budget",
                next_step="--budget 500 or --budget 60s",
            )
        if (seconds if timed else runs) is not None:
            raise UsageError(f"two budgets of {'seconds' if timed else 'runs'}", where="--budget")
        runs, seconds = (runs, value) if timed else (int(value), seconds)
    return runs, seconds


def _share(value: float | None, where: str) -> float | None:
    if value is not None and not 0 <= value < 1:
        raise UsageError(f"{value:g} is no mass: from 0 to less than 1", where=where)
    return value
