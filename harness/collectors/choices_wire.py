"""The operations `choices` and `explain` of the worker: their requests and replies as JSON.

`choices`: `{"arm", "mode": "full" | "best-first", "budget": {"runs", "seconds", "mass"} (each a number or
null, or absent), "close_last": bool, "close_floor": number, "prefixes": null | [[...] |
{"choices", "except", "weight"}, ...], "seeds": [decimal strings], "expand": bool, "first": tokens | null,
"sample": leaves, "oracle_tolerance": number}`; everything but `arm` may be absent, and
`harness.collectors.choices.Request` says what each means.
Replies, before the `ok`: `{"leaf": {"choices", "kinds", "p", "weight", "outcome", "counters", "digest",
"closed", "filled"}}` for each leaf, and `{"restart": {"reason"}}`, which makes every leaf before it void.
`ok`: `{"runs", "unexplored", "frontier": [{"choices", "except", "weight"}], "admission": {...}}`. A frontier
is a later request's `prefixes`.

`admit`: `{"arm", "expand", "first", "seeds", "replay": [leaf, ...], "refill": [...], "closed": [...]}` with
leaves as `choices` gave them runs these again; `ok` has the checks `replay`, `refill`, `closed`,
`interference` and `randomness`. It is for a tree that was walked in parts, each with `"sample": 0`.

`explain`: `{"arm", "choices": [[...], ...], "expand": bool, "first": tokens | null, "tolerance": number}`
gives `{"path": {...} | null}` for the first of those paths that departs by more than the tolerance
(`harness.choices.explain`). Of rows longer than `WHOLE_ROW` only the likeliest tokens of either are in `used`
and `expected`; `tokens` says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.adapters.base import Adapter, Arm
from harness.choices import explain
from harness.choices.admission import ORACLE_TOLERANCE, SAMPLE, SEEDS
from harness.choices.explore import FULL, MODES, Budget
from harness.choices.law import TOLERANCE
from harness.choices.tree import Leaf, Subtree
from harness.choices.window import windowed
from harness.collectors import choices
from harness.collectors.choices import WHOLE, Request, Restart, Samples, collect, program_of, steer
from harness.wire import BAD_REQUEST, JobError, is_seed

WHOLE_ROW = 64
"""Longest row that is shown whole."""

TOP = 8
"""Tokens of a longer row that are shown: the likeliest of each of the two rows."""

KINDS = {"token": "t", "drafter": "d", "accept": "a", "residual": "r", "bonus": "b"}
"""One letter a choice, in `kinds`; anything else is `?`."""


def walk(adapter: Adapter, arm: Arm, request: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Carry out `choices`: pairs of a reply's name and its value, `ok` last."""
    mode = request.get("mode", FULL)
    if mode not in MODES:
        raise JobError(BAD_REQUEST, f"mode is not one of: {', '.join(MODES)}")
    close_last = request.get("close_last", True)
    if not isinstance(close_last, bool):
        raise JobError(BAD_REQUEST, "close_last is not true or false")
    wanted = Request(
        arm=arm,
        mode=mode,
        budget=_budget(request.get("budget")),
        close_last=close_last,
        close_floor=_fraction(request.get("close_floor", 0.0), "close_floor"),
        roots=_roots(request.get("prefixes")),
        seeds=_seeds(request.get("seeds")),
        expand=request.get("expand", False) is True,
        first=first_of(request.get("first")),
        sample=_count(request.get("sample", SAMPLE), "sample"),
        oracle_tolerance=_fraction(request.get("oracle_tolerance", ORACLE_TOLERANCE), "oracle_tolerance"),
    )
    for item in collect(adapter, wanted):
        if isinstance(item, Leaf):
            yield "leaf", leaf_json(item)
        elif isinstance(item, Restart):
            yield "restart", {"reason": item.reason}
        else:
            yield (
                "ok",
                {
                    "runs": item.runs,
                    "unexplored": item.unexplored,
                    "frontier": [subtree_json(subtree) for subtree in item.frontier],
                    "admission": item.admission,
                },
            )


def explained(adapter: Adapter, arm: Arm, request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out `explain`."""
    paths = request.get("choices")
    if not isinstance(paths, list) or not all(_is_choices(path) for path in paths):
        raise JobError(BAD_REQUEST, "choices is not a list of lists of nonnegative integers")
    expand = request.get("expand", False) is True
    adapter = windowed(adapter, first_of(request.get("first")))
    program_of(adapter, arm)  # refuses what cannot be steered
    tolerance = _fraction(request.get("tolerance", TOLERANCE), "tolerance")
    chosen = [tuple(path) for path in paths]
    found = steer(lambda: explain.shortest(adapter, arm, chosen, expand, tolerance))
    return {"path": None if found is None else shortened(found)}


def shortened(path: Mapping[str, Any]) -> dict[str, Any]:
    """An explanation whose rows, if they are long, are cut to the tokens that matter; `tokens` names them."""
    if path.get("what") != "row":
        return dict(path)
    used, expected = np.array(path["used"]), np.array(path["expected"])
    tokens = np.arange(len(used))
    if len(used) > WHOLE_ROW:
        heavy = {*np.argsort(-used)[:TOP].tolist(), *np.argsort(-expected)[:TOP].tolist()}
        tokens = np.array(sorted(heavy, key=lambda token: (-max(used[token], expected[token]), token)))
    return {
        **path,
        "tokens": tokens.tolist(),
        "used": used[tokens].tolist(),
        "expected": expected[tokens].tolist(),
    }


def admitted(adapter: Adapter, arm: Arm, request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out `admit`."""
    wanted = Request(
        arm=arm,
        expand=request.get("expand", False) is True,
        first=first_of(request.get("first")),
        seeds=_seeds(request.get("seeds")),
    )
    samples = Samples(
        replay=_leaves(request.get("replay")),
        refill=_leaves(request.get("refill")),
        closed=_leaves(request.get("closed")),
    )
    return choices.admitted(adapter, wanted, samples)


def _leaves(given: Any) -> list[Leaf]:
    if not isinstance(given, list):
        raise JobError(BAD_REQUEST, "leaves to look at again are not a list")
    try:
        return [_leaf(item) for item in given]
    except (KeyError, TypeError, ValueError) as error:
        raise JobError(BAD_REQUEST, f"not a leaf: {error!r}") from error


def _leaf(item: Mapping[str, Any]) -> Leaf:
    """The parts of a leaf that running it again needs."""
    if not _is_choices(item["choices"]):
        raise ValueError("choices")
    return Leaf(
        choices=tuple(item["choices"]),
        kinds=(),
        p=tuple(float(p) for p in item["p"]),
        weight=0.0,
        outcome=dict(item["outcome"]),
        counters={},
        digest=str(item["digest"]),
        closed=item["closed"] is True,
        filled=int(item["filled"]),
    )


def leaf_json(leaf: Leaf) -> dict[str, Any]:
    """A leaf as JSON."""
    return {
        "choices": list(leaf.choices),
        "kinds": "".join(KINDS.get(kind, "?") for kind in leaf.kinds),
        "p": list(leaf.p),
        "weight": leaf.weight,
        "outcome": dict(leaf.outcome),
        "counters": dict(leaf.counters),
        "digest": leaf.digest,
        "closed": leaf.closed,
        "filled": leaf.filled,
    }


def subtree_json(subtree: Subtree) -> dict[str, Any]:
    """A part of the frontier as JSON."""
    return {
        "choices": list(subtree.choices),
        "except": sorted(subtree.exclude),
        "weight": subtree.weight,
    }


def _budget(given: Any) -> Budget:
    if given is None:
        return Budget()
    if not isinstance(given, dict) or not given.keys() <= {"runs", "seconds", "mass"}:
        raise JobError(BAD_REQUEST, "budget is not an object of runs, seconds and mass")
    for name, value in given.items():
        kinds = int if name == "runs" else (int, float)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or value < 0):
            raise JobError(BAD_REQUEST, f"budget.{name} is not a nonnegative number")
    return Budget(**given)


def _roots(given: Any) -> tuple[Subtree, ...]:
    if given is None:
        return WHOLE
    if not isinstance(given, list):
        raise JobError(BAD_REQUEST, "prefixes is not a list")
    return tuple(_root(item) for item in given)


def _root(item: Any) -> Subtree:
    if isinstance(item, list):
        item = {"choices": item}
    if not isinstance(item, dict) or not item.keys() <= {"choices", "except", "weight"}:
        raise JobError(BAD_REQUEST, "a prefix is neither a list nor an object of choices, except and weight")
    choices, exclude, weight = item.get("choices") or [], item.get("except", []), item.get("weight", 1.0)
    if not _is_choices(choices) or not _is_choices(exclude):
        raise JobError(BAD_REQUEST, "a prefix is not a list of nonnegative integers")
    weight = _fraction(weight, "the weight of a prefix")
    return Subtree(choices=tuple(choices), exclude=frozenset(exclude), weight=weight)


def _seeds(given: Any) -> tuple[int, ...]:
    if given is None:
        return tuple(range(SEEDS))
    if not isinstance(given, list) or not given:
        raise JobError(BAD_REQUEST, "seeds is not a list of decimal strings")
    for seed in given:
        if not isinstance(seed, str) or not is_seed(seed):
            raise JobError(BAD_REQUEST, f"not a seed: {seed!r}")
    return tuple(int(seed) for seed in given)


def first_of(given: Any) -> int | None:
    """The size of a window, or None for none; `JobError` for anything else."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise JobError(BAD_REQUEST, "first is not a positive integer")
    return given


def _count(given: Any, name: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise JobError(BAD_REQUEST, f"{name} is not a nonnegative integer")
    return given


def _fraction(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise JobError(BAD_REQUEST, f"{name} is not a number from 0 to 1")
    return float(value)


def _is_choices(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(index, int) and not isinstance(index, bool) and index >= 0 for index in value
    )
