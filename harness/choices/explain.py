"""Why a path fails: the first choice that was not the sequential kernel's, and what the processors saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from harness.adapters.base import Adapter, Arm, Kernel, Prefix
from harness.choices.law import TOLERANCE
from harness.choices.tree import Choices, Chooser, Diverged, Point, Program, Row, Run, weigh
from harness.wire import JobError


class Traced(Program, Protocol):
    """A program that can write down what each processor was shown."""

    trace: list[Any] | None
    stops: list[Any] | None
    """The same of the stopping criteria; an engine whose rule is no such object need not have it."""

    @property
    def prompt(self) -> tuple[int, ...]:
        """Tokens of the prompt."""
        ...


def shortest(
    adapter: Adapter, arm: Arm, paths: Sequence[Choices], expand: bool, tolerance: float = TOLERANCE
) -> dict[str, Any] | None:
    """Explain the first of these paths that departs by itself; None without paths or without an oracle.

    An outcome can be reached on several paths, not all of them at fault: so the paths are tried in order,
    and if none shows more, the first is returned with what is known of it.
    """
    try:
        kernel = adapter.kernel()
    except JobError:
        return None
    program: Traced = adapter.program(arm)  # type: ignore[attr-defined]
    first: dict[str, Any] | None = None
    for choices in paths:
        found = path(program, kernel, choices, expand, tolerance)
        first = first or found
        if found["what"] not in ("unknown", "diverged"):
            return found
    return first


def path(
    program: Traced, kernel: Kernel, choices: Choices, expand: bool = False, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """Run a path once more and compare each of its choices with sequential decoding.

    Probabilities that differ by at most `tolerance` are the arithmetic of float32.

    `what` is `row` (the engine held other probabilities), `stop` (it went on where the stopping rule ends,
    or ended where it does not), `committed` (it returned tokens that were not chosen), `returned` (it made
    something else of what was chosen), `crash`, `diverged` (the path cannot be taken again) or `unknown`.
    """
    chooser = Chooser(prefix=choices, expand=expand)
    listens, stops = hasattr(program, "stops"), list[Any]()
    program.trace = []
    if listens:
        program.stops = stops
    try:
        run = program.run(chooser)
        trace = program.trace
    except Diverged as error:
        return {"choices": list(choices), "what": "diverged", "detail": str(error)}
    finally:
        program.trace = None
        if listens:
            program.stops = None
    result: dict[str, Any] = {
        "choices": [point.taken for point in chooser.points],
        "kinds": [point.kind for point in chooser.points],
        "weight": weigh(chooser.points),
        "outcome": dict(run.outcome),
        "what": "unknown",
    }
    drafted: list[Row] = []
    for at, point in enumerate(chooser.points):
        prefix: Prefix = point.note.prefix
        if point.kind == "drafter":
            drafted.append(point.row)
            continue
        expected = _expected(kernel, point, drafted)
        if point.kind in ("token", "residual", "bonus"):
            drafted = []
        if expected is None or float(np.abs(point.row - expected).max()) <= tolerance:
            continue
        return result | {
            "what": "row",
            "choice": at,
            "prefix": list(prefix),
            "used": point.row.tolist(),
            "expected": expected.tolist(),
            "largest": float(np.abs(point.row - expected).max()),
            **_seen(program.prompt, trace, point),
        }
    handed: Prefix | None = getattr(program, "yielded", None)
    return result | _ending(program.prompt, stops, kernel, chooser, run, handed)


def _expected(kernel: Kernel, point: Point, drafted: Sequence[Row]) -> Row | None:
    """What this choice's row would be if everything before it were sequential; None if nothing is known.

    For draft models this is algorithm 1 of Leviathan et al., arXiv:2211.17192: accept x with chance
    min(1, p(x) / q(x)), else sample from the normalised positive part of p - q.
    """
    note = point.note
    if len(note.prefix) >= kernel.horizon or (note.prefix and _ended(kernel, note.prefix)):
        return None
    p = np.array(kernel.rows([note.prefix])[0])
    if point.kind in ("token", "bonus"):
        return p
    if note.row >= len(drafted):
        return None
    q = drafted[note.row]
    if point.kind == "accept":
        chance = min(1.0, float(p[note.candidate] / q[note.candidate]))
        return np.array([chance, 1.0 - chance])
    rest = np.maximum(p - q, 0.0)
    return rest / rest.sum() if rest.sum() > TOLERANCE else None


def _ended(kernel: Kernel, prefix: Prefix) -> bool:
    return any(kernel.stops([prefix[:length]])[0] for length in range(1, len(prefix) + 1))


def _seen(prompt: Sequence[int], trace: Sequence[Any], point: Point) -> dict[str, Any]:
    """What the processors were shown for a row, and since the last commit, beside what they should have.

    Where that is the same, it was an earlier call that told: then all calls of the request are given.
    """
    note = point.note
    before = list(trace[: note.calls])
    committed = before[-1].committed if before else len(note.prefix)
    since = [call for call in before if call.committed == committed]
    verified = [at for at, call in enumerate(since) if call.phase == "verify"]
    chain = max(1, len(verified) // note.rows)
    shown = verified[note.row * chain : (note.row + 1) * chain]
    # The rows of a block are all processed before the first is sampled; later rows had no part in this one.
    later = len(since) - shown[-1] - 1 if shown else 0
    names = [since[at].processor for at in shown]
    calls = _calls(prompt, since[: len(since) - later])
    wanted = _sequential(prompt, names, note.prefix, committed)
    if calls == wanted:
        calls = _calls(prompt, before[: len(before) - later])
        wanted = _sequential(prompt, names, note.prefix, 0)
    return {
        "processors": names,
        "saw": next((_whole(prompt, since[at]) for at in shown), None),
        "should_have_seen": [*prompt, *note.prefix],
        "calls": calls,
        "sequential_calls": wanted,
    }


def _calls(prompt: Sequence[int], calls: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "model": call.model,
            "phase": call.phase,
            "processor": call.processor,
            "saw": _whole(prompt, call),
        }
        for call in calls
    ]


def _sequential(
    prompt: Sequence[int], names: Sequence[str], prefix: Prefix, first: int
) -> list[dict[str, Any]]:
    """The calls of sequential decoding, from the one after `first` tokens to the one after `prefix`."""
    return [
        {"model": "main", "phase": "verify", "processor": name, "saw": [*prompt, *prefix[:length]]}
        for length in range(first, len(prefix) + 1)
        for name in names
    ]


def _whole(prompt: Sequence[int], call: Any) -> list[int]:
    return [*prompt, *call.tokens] if call.continues else list(call.tokens)


def _ending(
    prompt: Sequence[int],
    shown: Sequence[Any],
    kernel: Kernel,
    chooser: Chooser,
    run: Run,
    handed: Prefix | None,
) -> dict[str, Any]:
    """No row differs: what was done with the chosen tokens must.

    `handed` are the tokens that the engine's loop handed out, where its caller gets to see others.
    """
    if "tokens" not in run.outcome:
        return {"what": "crash"}
    chosen = _chosen(chooser.points)
    tokens: Prefix = tuple(run.outcome["tokens"]) if handed is None else handed
    if handed is not None and chosen[:-1] == handed:
        tokens = chosen  # the loop ended before it handed out the last one
    for length in range(1, len(tokens) + 1):
        stops = length >= kernel.horizon or kernel.stops([tokens[:length]])[0]
        if stops != (length == len(tokens)):
            what = "went on past a stop" if stops else "ended without one"
            prefix = tokens[:length]
            names = list(dict.fromkeys(call.processor for call in shown if call.model == "main"))
            return {
                "what": "stop",
                "prefix": list(prefix),
                "detail": what,
                "should_have_seen": [*prompt, *prefix],
                "criteria": names,
                "calls": _calls(prompt, [call for call in shown if call.model == "main"]),
                # They are first asked when there is a token.
                "sequential_calls": _sequential(prompt, names, prefix, 1),
            }
    if chosen[: len(tokens)] != tokens[: len(chosen)]:
        return {"what": "committed", "chosen": list(chosen)}
    if handed is not None and kernel.outcome(tokens) != run.outcome:
        return {"what": "returned", "prefix": list(tokens), "expected": dict(kernel.outcome(tokens))}
    return {}


def _chosen(points: Sequence[Point]) -> Prefix:
    """The longest sequence that the choices stand for."""
    longest: Prefix = ()
    for point in points:
        if point.kind in ("token", "residual", "bonus"):
            reached = (*point.note.prefix, point.taken)
            longest = reached if len(reached) > len(longest) else longest
    return longest
