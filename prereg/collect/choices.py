"""Walking both arms of one configuration through the engine's choices, by workers side by side.

A walk without a budget is split among the workers (`prereg.collect.split`); a walk with one goes best first,
an arm a worker, since where it stops depends on what it has seen.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prereg.codec.canonical import Json, value_digest
from prereg.collect.lanes import Lanes, Opening
from prereg.collect.leaf import leaf_of as leaf_of
from prereg.collect.network import isolation
from prereg.collect.runtime import built, cache_folder, environment_of, interpreter, load_build
from prereg.collect.split import Plan, walk_split
from prereg.collect.split_checks import Checks
from prereg.collect.split_journal import Journal
from prereg.collect.worker import Launch, Worker, WorkerLost, WorkerRefused
from prereg.errors import EngineFailed, PreregError, UsageError
from prereg.model.law import Decoded
from prereg.model.tree import Tree, TreeLeaf
from prereg.store.harness import harness_digest
from prereg.store.layout import harness_root

SILENCE = 600.0
"""Seconds without a leaf after which a worker is given up."""

ABOUT: Mapping[str, str] = {
    "model": "--model",
    "the text": "--prompt",
    "the prompt": "--prompt",
    "prompt and horizon": "--horizon",
    "features.processors": "--processor",
}
"""What an adapter's refusal begins with, and the option that it is about."""

SPELLED = 200
"""Leaves of each arm whose tokens are spelled, the heaviest."""

ARMS: tuple[dict[str, Any], ...] = (
    {"id": "off", "role": "reference", "speculation": False},
    {"id": "on", "role": "test", "speculation": True},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What to walk, and how far."""

    configuration: Mapping[str, Any]
    model: Mapping[str, Any]
    prompt: Sequence[int] | None
    text: str | None = None
    """A prompt for the model's own tokenizer, in place of token ids."""
    runs: int | None = None
    """Runs an arm at most; None for no bound."""
    seconds: float | None = None
    """Seconds an arm at most; None for no bound."""
    mass: float | None = None
    """Stop once the unexplored mass is at most this; None to go on to the end."""
    close_floor: float = 0.0
    """Paths that weigh less stay unexplored."""
    first: int | None = None
    """Only the law of the first so many tokens (`harness.choices.window`)."""
    checks: Checks = field(default_factory=Checks)
    processes: int = 2
    """Workers at most."""
    journal: Path | None = None
    """Where finished parts of a walk without a budget are kept."""
    remember: bool = False
    """Without a journal of one's own: keep them in the cache until the walk is done."""

    @property
    def bounded(self) -> bool:
        """Whether there is a budget."""
        return any(bound is not None for bound in (self.runs, self.seconds, self.mass))


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """Both trees, and why the first failing path fails."""

    off: Tree
    on: Tree
    explanation: dict[str, Any] | None
    prompt: Sequence[int] = ()
    """Its token ids."""
    ends: Sequence[int] = ()
    """The model's end tokens, where the engine's adapter tells."""
    texts: Mapping[int, str] | None = None
    """What some tokens read as: those of the prompt, of the heaviest outcomes and of the explanation."""


def walk_arms(
    walk: Walk,
    build: str | Path,
    *,
    advance: Callable[[str, int], None],
    failing: Callable[[Tree, Tree], Sequence[tuple[int, ...]]],
) -> Walked:
    """Walk the off and the on arm at once; then explain a failing path.

    `advance(arm, leaves)` is told of progress from worker threads. `failing` picks the paths of the on arm to
    explain, most telling first. A path in place of a build's name is the interpreter of any environment that
    has the engine. Raises EngineFailed if a worker fails, UsageError if the engine's adapter refuses the
    configuration, WrongState if the build is not made.
    """
    guard = threading.Lock()

    def told(arm: str, leaves: int) -> None:
        with guard:
            advance(arm, leaves)

    count = max(1, walk.processes)
    with opened_lanes(walk, build, min(2, count) if walk.bounded else count) as (lanes, prompt):
        off, on = _bounded(walk, lanes, told) if walk.bounded else _whole(walk, build, lanes, told)
        paths = failing(off, on)
        explanation = _explain(walk, lanes.workers[-1], on, paths) if paths else None
        return _spelled(lanes.workers[-1], off, on, explanation, prompt)


@contextmanager
def opened_lanes(walk: Walk, build: str | Path, count: int) -> Iterator[tuple[Lanes, list[int]]]:
    """Workers with the configuration of `walk` open, and the prompt's ids. Raises as `walk_arms` does."""
    python = build if isinstance(build, Path) else interpreter(environment_of(load_build(build)))
    opening = Opening(configuration=walk.configuration, model=walk.model, prompt=walk.prompt, text=walk.text)
    with tempfile.TemporaryDirectory(prefix="prereg-probe-") as scratch:

        def launch(name: str) -> Launch:
            return Launch(
                python=python, code=harness_root().parent, scratch=Path(scratch) / name, isolation=isolation()
            )

        try:
            with Lanes(launch, count) as lanes:
                yield lanes, lanes.open(opening) or []
        except WorkerRefused as refused:
            raise refusal(refused) from None
        except (WorkerLost, OSError) as error:
            next_step = None if isinstance(build, Path) else f"prereg build {build}"
            raise EngineFailed(f"the probe failed: {error}", next_step=next_step) from None


def refusal(refused: WorkerRefused) -> PreregError:
    """The engine side's refusal, with the option that it is about."""
    if refused.code == "engine":
        return EngineFailed(f"the engine failed: {refused.message}")
    where = next((option for start, option in ABOUT.items() if refused.message.startswith(start)), "--set")
    return UsageError(f"the engine's adapter refuses: {refused}", where=where)


def _bounded(walk: Walk, lanes: Lanes, advance: Callable[[str, int], None]) -> tuple[Tree, Tree]:
    """Both arms best first: side by side if there are two workers, else one after the other."""
    if len(lanes.workers) == 1:
        off, on = (walk_arm(walk, arm, lanes.workers[0], advance) for arm in ARMS)
        return off, on
    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = [
            pool.submit(walk_arm, walk, arm, worker, advance)
            for arm, worker in zip(ARMS, lanes.workers, strict=False)
        ]
        try:
            off, on = (future.result() for future in futures)
        except BaseException:
            lanes.kill()
            raise
    return off, on


def _whole(
    walk: Walk, build: str | Path, lanes: Lanes, advance: Callable[[str, int], None]
) -> tuple[Tree, Tree]:
    """Both arms to the end, in parts that all workers share."""
    identity = identity_of(walk, build)
    path = walk.journal
    if identity is None and path is not None:
        raise UsageError(f"nothing tells whether {build} is still the same", where="--resume")
    if identity is not None and path is None and walk.remember:
        path = cache_folder() / "probes" / f"{identity}.jsonl"
    journal = Journal(path, identity or "", required=walk.journal is not None)
    try:
        trees = walk_split(Plan(arms=ARMS, first=walk.first, checks=walk.checks), lanes, journal, advance)
    except BaseException:
        journal.close()
        raise
    journal.close(remove=walk.journal is None)
    return trees["off"], trees["on"]


def identity_of(walk: Walk, build: str | Path) -> str | None:
    """The digest of all that the parts of a walk depend on; None where the environment has no fingerprint."""
    marker = None if isinstance(build, Path) else built(load_build(build))
    if marker is None:
        return None
    value: Json = {
        "configuration": dict(walk.configuration),
        "model": dict(walk.model),
        "prompt": None if walk.prompt is None else list(walk.prompt),
        "text": walk.text,
        "first": walk.first,
        "harness": harness_digest(),
        "environment": marker.fingerprint,
    }
    return value_digest(value)


def walk_arm(walk: Walk, arm: Mapping[str, Any], worker: Worker, advance: Callable[[str, int], None]) -> Tree:
    """Walk one arm by a worker with the configuration open. Raises WorkerRefused or WorkerLost."""
    leaves: list[TreeLeaf] = []

    def leaf(value: Any) -> None:
        leaves.append(leaf_of(value))
        advance(str(arm["id"]), 1)

    def restart(_: Any) -> None:
        advance(str(arm["id"]), -len(leaves))
        leaves.clear()

    began = time.monotonic()
    seeds = walk.checks.seeds
    done = worker.call(
        "choices",
        silence=SILENCE,
        streams={"leaf": leaf, "restart": restart},
        arm=dict(arm),
        mode="best-first",
        budget={"runs": walk.runs, "seconds": walk.seconds, "mass": walk.mass},
        close_floor=walk.close_floor,
        first=walk.first,
        sample=walk.checks.sample,
        seeds=None if seeds is None else list(seeds[str(arm["id"])]),
        oracle_tolerance=walk.checks.oracle_tolerance,
    )
    return Tree(
        leaves=tuple(leaves),
        runs=int(done["runs"]),
        unexplored=float(done["unexplored"]),
        admission=dict(done["admission"]),
        seconds=time.monotonic() - began,
    )


def _explain(walk: Walk, worker: Worker, on: Tree, paths: Sequence[tuple[int, ...]]) -> dict[str, Any] | None:
    value = worker.call(
        "explain",
        silence=SILENCE,
        arm=dict(ARMS[1]),
        choices=[list(p) for p in paths],
        expand=bool(on.admission.get("refill", {}).get("expanded", False)),
        first=walk.first,
        tolerance=walk.checks.oracle_tolerance,
    )
    found = value["path"]
    return None if found is None else dict(found)


def _spelled(
    worker: Worker, off: Tree, on: Tree, explanation: dict[str, Any] | None, prompt: Sequence[int]
) -> Walked:
    """Everything, with what the tokens to be shown read as, if the engine's adapter tells."""
    tokens = set(prompt)
    for tree in (off, on):
        for leaf in sorted(tree.leaves, key=lambda leaf: -math.prod(leaf.p))[:SPELLED]:
            if isinstance(leaf.outcome, Decoded):
                tokens.update(leaf.outcome.tokens)
    for name in ("tokens", "prefix", "saw", "should_have_seen"):
        tokens.update((explanation or {}).get(name) or ())
    for name in ("calls", "sequential_calls"):
        for call in (explanation or {}).get(name) or ():
            tokens.update(call["saw"])
    asked = sorted(tokens)
    try:
        found = worker.call("vocabulary", tokens=asked)
    except WorkerRefused:
        found = {"ends": [], "texts": None}
    texts = None if found["texts"] is None else dict(zip(asked, found["texts"], strict=True))
    return Walked(
        off=off, on=on, explanation=explanation, prompt=tuple(prompt), ends=tuple(found["ends"]), texts=texts
    )


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))
