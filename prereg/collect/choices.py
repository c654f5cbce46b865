"""Walking both arms of one configuration through the engine's choices, by workers side by side."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.collect.network import isolation
from prereg.collect.runtime import environment_of, interpreter, load_build
from prereg.collect.worker import Launch, Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed, UsageError
from prereg.model.tree import Tree, TreeLeaf
from prereg.store.layout import harness_root

SILENCE = 600.0
"""Seconds without a leaf after which a worker is given up."""

ARMS: tuple[dict[str, Any], ...] = (
    {"id": "off", "role": "reference", "speculation": False},
    {"id": "on", "role": "test", "speculation": True},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What to walk, and how far."""

    configuration: Mapping[str, Any]
    model: Mapping[str, Any]
    prompt: Sequence[int]
    runs: int | None = None
    """Runs an arm at most; None for no bound."""
    seconds: float | None = None
    """Seconds an arm at most; None for no bound."""
    mass: float | None = None
    """Stop once the unexplored mass is at most this; None to go on to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """Both trees, and why the first failing path fails."""

    off: Tree
    on: Tree
    explanation: dict[str, Any] | None


def walk_arms(
    walk: Walk,
    build: str | Path,
    *,
    advance: Callable[[str, int], None],
    failing: Callable[[Tree, Tree], Sequence[tuple[int, ...]]],
) -> Walked:
    """Walk the off and the on arm at once, each in a worker of its own; then explain a failing path.

    `advance(arm, leaves)` is told of progress from worker threads. `failing` picks the paths of the on arm to
    explain, most telling first. A path in place of a build's name is the interpreter of any environment that
    has the engine. Raises EngineFailed if a worker fails, UsageError if the engine's adapter refuses the
    configuration, WrongState if the build is not made.
    """
    python = build if isinstance(build, Path) else interpreter(environment_of(load_build(build)))
    guard = threading.Lock()

    def told(arm: str, leaves: int) -> None:
        with guard:
            advance(arm, leaves)

    with tempfile.TemporaryDirectory(prefix="prereg-probe-") as scratch:

        def launch(name: str) -> Launch:
            return Launch(
                python=python, code=harness_root().parent, scratch=Path(scratch) / name, isolation=isolation()
            )

        try:
            with ThreadPoolExecutor(max_workers=2) as pool:
                off, on = pool.map(lambda arm: _walk_arm(walk, arm, launch(arm["id"]), told), ARMS)
            paths = failing(off, on)
            explanation = _explain(walk, launch("why"), on, paths) if paths else None
        except WorkerRefused as refused:
            raise UsageError(f"the engine's adapter refuses: {refused}", where="--set") from None
        except (WorkerLost, OSError) as error:
            next_step = None if isinstance(build, Path) else f"prereg build {build}"
            raise EngineFailed(f"the probe failed: {error}", next_step=next_step) from None
    return Walked(off=off, on=on, explanation=explanation)


def _open(worker: Worker, walk: Walk) -> None:
    worker.call(
        "open",
        configuration=dict(walk.configuration),
        model=dict(walk.model),
        prompt=list(walk.prompt),
        cwd=None,
    )


def _walk_arm(
    walk: Walk, arm: Mapping[str, Any], launch: Launch, advance: Callable[[str, int], None]
) -> Tree:
    leaves: list[TreeLeaf] = []

    def leaf(value: Any) -> None:
        leaves.append(leaf_of(value))
        advance(str(arm["id"]), 1)

    def restart(_: Any) -> None:
        advance(str(arm["id"]), -len(leaves))
        leaves.clear()

    bounded = walk.runs is not None or walk.seconds is not None or walk.mass is not None
    began = time.monotonic()
    with Worker(launch) as worker:
        _open(worker, walk)
        done = worker.call(
            "choices",
            silence=SILENCE,
            streams={"leaf": leaf, "restart": restart},
            arm=dict(arm),
            mode="best-first" if bounded else "full",
            budget={"runs": walk.runs, "seconds": walk.seconds, "mass": walk.mass},
        )
    return Tree(
        leaves=tuple(leaves),
        runs=int(done["runs"]),
        unexplored=float(done["unexplored"]),
        admission=dict(done["admission"]),
        seconds=time.monotonic() - began,
    )


def leaf_of(value: Any) -> TreeLeaf:
    """A leaf as a worker sends it."""
    counters = value["counters"]
    return TreeLeaf(
        choices=tuple(value["choices"]),
        p=tuple(float(p) for p in value["p"]),
        outcome=outcome_from(value["outcome"]),
        proposals=int(counters["proposals"]),
        accepted=int(counters["accepted"]),
        verifications=int(counters["verifications"]),
        kinds=str(value["kinds"]),
        digest=str(value["digest"]),
        closed=bool(value["closed"]),
        filled=int(value["filled"]),
    )


def _explain(walk: Walk, launch: Launch, on: Tree, paths: Sequence[tuple[int, ...]]) -> dict[str, Any] | None:
    expanded = bool(on.admission.get("refill", {}).get("expanded", False))
    with Worker(launch) as worker:
        _open(worker, walk)
        value = worker.call(
            "explain", silence=SILENCE, arm=dict(ARMS[1]), choices=[list(p) for p in paths], expand=expanded
        )
    found = value["path"]
    return None if found is None else dict(found)
