"""The checks of a tree that was walked in parts: those that `harness.collectors.choices` makes of a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prereg.codec.canonical import dumps
from prereg.collect.worker import Worker, WorkerRefused

SAMPLE = 24
"""Leaves looked at again by each check."""

SUM_TOLERANCE = 1e-9
MAX_ORACLE = 50_000
"""Leaves up to which the oracle is asked too."""

SILENCE = 600.0
SHOWN = 5

Leaves = Sequence[Mapping[str, Any]]
"""Leaves as a worker sends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """How much is looked at again."""

    sample: int = SAMPLE
    """Leaves a check."""
    seeds: Mapping[str, Sequence[str]] | None = None
    """By arm: seeds of the requests that are made with and without wrappers; None for the harness's own."""
    oracle: bool = True
    """Whether the off arm is compared with the oracle's law."""
    oracle_tolerance: float = 1e-6


def spaced(leaves: Leaves, count: int) -> list[Mapping[str, Any]]:
    """At most `count` leaves, evenly spaced, the first and the last among them."""
    if len(leaves) <= count:
        return list(leaves)
    if count < 2:
        return list(leaves[:count])
    return [leaves[at * (len(leaves) - 1) // (count - 1)] for at in range(count)]


def doubtful(leaves: Leaves, count: int, ends: Collection[int]) -> list[Mapping[str, Any]]:
    """At most `count` told leaves that may well be told wrong, the heaviest for each last choice.

    Those are the ones whose last choice is in `ends`, and those that end otherwise than most of their
    siblings: what the engine does at an end token or a stop is what an adapter may not know.
    """
    shapes: dict[tuple[int, ...], Counter[Any]] = {}
    for leaf in leaves:
        shapes.setdefault(tuple(leaf["choices"][:-1]), Counter())[_shape(leaf)] += 1
    found: dict[int, Mapping[str, Any]] = {}
    for leaf in sorted(leaves, key=lambda leaf: -float(leaf["weight"])):
        if leaf["closed"]:
            siblings, last = shapes[tuple(leaf["choices"][:-1])], leaf["choices"][-1]
            if last in ends or 2 * siblings[_shape(leaf)] <= siblings.total():
                found.setdefault(last, leaf)
    return spaced(list(found.values()), count)


def _shape(leaf: Mapping[str, Any]) -> tuple[Any, ...]:
    outcome = leaf["outcome"]
    tokens = outcome.get("tokens")
    return tuple(outcome) if tokens is None else (len(tokens), outcome.get("finish"))


def ends_of(worker: Worker) -> list[int]:
    """The open model's end tokens, where the engine's adapter tells."""
    try:
        return list(worker.call("vocabulary", tokens=[])["ends"])
    except WorkerRefused:
        return []


def checked(
    worker: Worker, checks: Checks, leaves: Leaves, arm: Mapping[str, Any], expand: bool, first: int | None
) -> dict[str, Any]:
    """What running samples of the leaves again shows; `oracle` too, where there is one."""
    filled = [leaf for leaf in leaves if leaf["filled"] and not leaf["closed"]]
    closed = [leaf for leaf in leaves if leaf["closed"]]
    again = [
        *doubtful(leaves, checks.sample, ends_of(worker) if closed else []),
        *spaced(closed, checks.sample),
    ]
    seeds = None if checks.seeds is None else list(checks.seeds[str(arm["id"])])
    found: dict[str, Any] = worker.call(
        "admit",
        silence=SILENCE,
        arm=dict(arm),
        expand=expand,
        first=first,
        seeds=seeds,
        replay=spaced([leaf for leaf in leaves if not leaf["closed"]], checks.sample),
        refill=spaced(filled, checks.sample),
        closed=list({tuple(leaf["choices"]): leaf for leaf in again}.values()),
    )
    found["refill"]["eligible"], found["closed"]["closed"] = len(filled), len(closed)
    asked = checks.oracle and not arm["speculation"] and len(leaves) <= MAX_ORACLE
    found["oracle"] = _oracle(worker, leaves, first, checks.oracle_tolerance) if asked else None
    return found


def _oracle(worker: Worker, leaves: Leaves, first: int | None, tolerance: float) -> dict[str, Any] | None:
    try:
        reference = worker.call("law", silence=SILENCE, first=first)["law"]
    except WorkerRefused:
        return None
    theirs = {dumps(mass["outcome"]): float(mass["p"]) for mass in reference}
    weights: dict[bytes, list[float]] = {}
    for leaf in leaves:
        weights.setdefault(dumps(leaf["outcome"]), []).append(float(leaf["weight"]))
    ours = {outcome: math.fsum(parts) for outcome, parts in weights.items()}
    largest = max((abs(ours.get(o, 0.0) - theirs.get(o, 0.0)) for o in ours.keys() | theirs), default=0.0)
    return {"outcomes": len(theirs), "largest": largest, "ok": bool(theirs) and largest <= tolerance}


def merged_walk(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all parts noticed while they replayed prefixes, in an order that no worker decides."""
    walks = [part["admission"]["walk"] for part in parts]
    differences = sorted((d for walk in walks for d in walk["differences"]), key=dumps)
    return {
        "runs": sum(int(walk["runs"]) for walk in walks),
        "different": sum(int(walk["different"]) for walk in walks),
        "differences": differences[:SHOWN],
        "largest": max((float(walk["largest"]) for walk in walks), default=0.0),
        "ok": all(walk["ok"] for walk in walks),
    }


def restart_of(found: Mapping[str, Any], walk: Mapping[str, Any]) -> str | None:
    """Which shortcut failed, so that the tree must be walked again without it; None if none did.

    What differs when it is merely repeated shows a program that remembers, not a shortcut that fails.
    """
    if not (found["replay"]["ok"] and walk["ok"]):
        return None
    if not found["refill"]["ok"]:
        return "refill"
    return None if found["closed"]["ok"] else "closed"


def whole(
    leaves: Leaves, walk: Mapping[str, Any], found: Mapping[str, Any], unaccounted: int
) -> dict[str, Any]:
    """The admission of the whole tree; nothing of it is unexplored, or the weights say so."""
    total = math.fsum(float(leaf["weight"]) for leaf in leaves)
    unaccounted += int(found["randomness"]["unaccounted"])
    ran = [leaf for leaf in leaves if not leaf["closed"]]
    admission: dict[str, Any] = {
        "weights": {
            "sum": total,
            "unexplored": 0.0,
            "whole": True,
            "ok": abs(total - 1.0) <= SUM_TOLERANCE,
        },
        "walk": dict(walk),
        "replay": found["replay"],
        "refill": found["refill"],
        "closed": found["closed"],
        "randomness": {"unaccounted": unaccounted, "ok": unaccounted == 0},
        "interference": found["interference"],
        "oracle": found["oracle"],
        "proposals": sum(int(leaf["counters"]["proposals"]) for leaf in ran),
        "accepted": sum(int(leaf["counters"]["accepted"]) for leaf in ran),
    }
    admission["ok"] = all(check["ok"] for check in admission.values() if isinstance(check, dict))
    return admission
