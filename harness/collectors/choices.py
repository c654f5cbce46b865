"""Choices: one arm's tree of random choices, leaf by leaf, and whether it may be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.adapters.base import Adapter, Arm, offered
from harness.choices import admission
from harness.choices.explore import FULL, Budget, Explorer
from harness.choices.law import law
from harness.choices.tree import Leaf, Program, Subtree
from harness.choices.window import windowed
from harness.oracle import enumerate
from harness.wire import UNSUPPORTED, JobError

WHOLE = (Subtree(choices=()),)

MAX_ORACLE = 50_000
"""Leaves up to which the oracle is asked too."""

ORACLE_ROWS = 100
"""Where something is unexplored: prefixes that the oracle may look at, for each leaf of a sample, which is
small where a run is dear. A tree that is whole is known to be small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to walk, and how far."""

    arm: Arm
    mode: str = FULL
    budget: Budget = field(default_factory=Budget)
    close_last: bool = True
    close_floor: float = 0.0
    """See `Explorer.close_floor`."""

    roots: Sequence[Subtree] = WHOLE
    seeds: Sequence[int] = tuple(range(admission.SEEDS))
    """Of the requests that are made with and without wrappers."""

    expand: bool = False
    """Walk the rows past the first mismatch from the start."""

    first: int | None = None
    """See `harness.choices.window`: the law of the first so many tokens; None for all."""

    sample: int = admission.SAMPLE
    """Leaves looked at again by each check; fewer where a run is dear. 0 checks nothing: the leaves of a part
    are checked when the whole is put together (`admitted`)."""

    oracle_tolerance: float = admission.ORACLE_TOLERANCE
    """A deep network's cached and uncached rows differ by more than those of a tiny one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """All leaves so far are void: the tree is walked again with fewer shortcuts."""

    reason: str
    """`refill` (a row past the first mismatch mattered) or `closed` (a told leaf went otherwise)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a walk."""

    runs: int
    """Runs of the walk that counts; the checks' own are not among them."""

    unexplored: float
    frontier: list[Subtree]
    admission: dict[str, Any]


def collect(adapter: Adapter, request: Request) -> Iterator[Leaf | Restart | Done]:
    """Walk one arm: leaves, perhaps a restart and leaves anew, and in the end what became of it.

    Raises `JobError` (unsupported) where the engine draws at random in a way that no chooser can steer.
    """
    ends = _ends(adapter)
    adapter = windowed(adapter, request.first)
    program = program_of(adapter, request.arm)
    expand, close, seconds = request.expand, request.close_last, request.budget.seconds
    restarts: list[str] = []
    while True:
        explorer = Explorer(
            program=program,
            mode=request.mode,
            budget=replace(request.budget, seconds=seconds),
            roots=request.roots,
            close=close,
            close_floor=request.close_floor,
            expand=expand,
        )
        leaves: list[Leaf] = []
        for leaf in steered_leaves(explorer.leaves()):
            leaves.append(leaf)
            yield leaf
        if not request.sample:
            yield _part(program, explorer)
            return
        found = steer(lambda: _sampled(program, leaves, expand, request, ends))  # noqa: B023
        # What differs when it is merely repeated shows a program that remembers, not a shortcut that fails.
        remembers = not (found["replay"]["ok"] and not explorer.differences)
        if remembers or (found["refill"]["ok"] and found["closed"]["ok"]):
            break
        expand, close, reason = (
            (True, close, "refill") if not found["refill"]["ok"] else (expand, False, "closed")
        )
        restarts.append(reason)
        yield Restart(reason=reason)
    summed = law(leaves)
    checks: dict[str, Any] = {
        "weights": admission.weighed(leaves, explorer, admission.is_whole(request.roots)),
        "walk": admission.walked(explorer),
        "replay": found["replay"],
        "refill": found["refill"] | {"expanded": expand},
        "closed": found["closed"] | {"reopened": request.close_last and not close},
        "randomness": _randomness(program),
        "interference": _interference(program, request.seeds),
        "oracle": _oracle(adapter, request, leaves, explorer),
        "proposals": summed.proposals,
        "accepted": summed.accepted,
        "restarts": restarts,
    }
    checks["ok"] = all(check["ok"] for check in checks.values() if isinstance(check, dict))
    yield Done(
        runs=explorer.runs,
        unexplored=explorer.unexplored(),
        frontier=explorer.frontier(),
        admission=checks,
    )


def program_of(adapter: Adapter, arm: Arm) -> Program:
    """The arm as a program; `JobError` (unsupported) for an engine without a `program`."""
    make: Callable[[Arm], Program] | None = getattr(adapter, "program", None)
    if make is None:
        raise JobError(UNSUPPORTED, "the random choices of this engine cannot be steered")
    return make(arm)


def steer(call: Callable[[], Any]) -> Any:
    """Call; an engine that cannot be steered becomes a `JobError`."""
    try:
        return call()
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise JobError(UNSUPPORTED, f"{type(error).__name__}: {error}") from error


def steered_leaves(leaves: Iterator[Leaf]) -> Iterator[Leaf]:
    while (leaf := steer(lambda: next(leaves, None))) is not None:
        yield leaf


def _part(program: Program, explorer: Explorer) -> Done:
    """The end of a walk whose leaves somebody else will check."""
    return Done(
        runs=explorer.runs,
        unexplored=explorer.unexplored(),
        frontier=explorer.frontier(),
        admission={"walk": admission.walked(explorer), "randomness": _randomness(program)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Leaves of a tree that was walked in parts, picked to be looked at again."""

    replay: Sequence[Leaf]
    refill: Sequence[Leaf]
    closed: Sequence[Leaf]


def admitted(adapter: Adapter, request: Request, samples: Samples) -> dict[str, Any]:
    """The checks of `collect` that run the program again, on samples of a tree that was walked in parts."""
    program = program_of(windowed(adapter, request.first), request.arm)
    expand, stateful = request.expand, request.first is None
    found: dict[str, Any] = {
        "replay": steer(lambda: admission.repeated(program, samples.replay, expand)),
        "refill": steer(lambda: admission.repeated(program, samples.refill, expand, (1, 2), stateful)),
        "closed": steer(lambda: admission.repeated(program, samples.closed, expand)),
    }
    found["interference"] = _interference(program, request.seeds)
    found["randomness"] = _randomness(program)
    return found


def _sampled(
    program: Program, leaves: Sequence[Leaf], expand: bool, request: Request, ends: Sequence[int]
) -> dict[str, dict[str, Any]]:
    count, stateful = request.sample, request.first is None
    ran = admission.spaced([leaf for leaf in leaves if not leaf.closed], count)
    return {
        "replay": admission.repeated(program, ran, expand),
        "refill": admission.refilled(program, leaves, expand, count, stateful),
        "closed": admission.confirmed(program, leaves, expand, count, ends),
    }


def _ends(adapter: Adapter) -> Sequence[int]:
    try:
        return list(offered(adapter, "vocabulary")()["ends"])
    except JobError:
        return ()


def _randomness(program: Program) -> dict[str, Any]:
    changed = getattr(program, "random_state_changed", 0)
    return {"unaccounted": changed, "ok": changed == 0}


def _interference(program: Program, seeds: Sequence[int]) -> dict[str, Any] | None:
    seeded = getattr(program, "seeded", None)
    return None if seeded is None else admission.undisturbed(program, seeds)  # type: ignore[arg-type]


def _oracle(
    adapter: Adapter, request: Request, leaves: Sequence[Leaf], explorer: Explorer
) -> dict[str, Any] | None:
    """The off arm beside the oracle, if there is one and the tree is small enough for it."""
    if request.arm.speculation or not admission.is_whole(request.roots) or len(leaves) > MAX_ORACLE:
        return None
    most = None if explorer.unexplored() == 0.0 else ORACLE_ROWS * request.sample
    try:
        reference = enumerate.law(adapter.kernel(), most)
    except (JobError, enumerate.TooLarge):
        return None
    except Exception:
        # Outside its loop the engine raises too: where every path crashes there is no law to compare.
        if all("crash" in leaf.outcome for leaf in leaves):
            return None
        raise
    return admission.against(leaves, reference, request.oracle_tolerance)
