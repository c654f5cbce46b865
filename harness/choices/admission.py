"""Whether an enumerated tree may be believed: checks as data, each with its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from harness.choices.explore import Explorer
from harness.choices.law import law
from harness.choices.tree import Choices, Chooser, Diverged, Leaf, Program, Run, Subtree
from harness.oracle.naive import canonical

SAMPLE = 24
"""Leaves looked at again by each check."""

SEEDS = 4
"""Requests made with and without wrappers."""

SUM_TOLERANCE = 1e-9
ORACLE_TOLERANCE = 1e-6
SHOWN = 5


class Seeded(Protocol):
    """A program that can also be run from a seed, with its wrappers and without."""

    def seeded(self, seed: int, wrapped: bool) -> Mapping[str, Any]:
        """Everything that one can tell of such a request; equal with and without wrappers."""
        ...


def spaced(leaves: Sequence[Leaf], count: int = SAMPLE) -> list[Leaf]:
    """At most `count` leaves, evenly spaced, the first and the last among them."""
    if len(leaves) <= count:
        return list(leaves)
    if count < 2:
        return list(leaves[:count])
    return [leaves[at * (len(leaves) - 1) // (count - 1)] for at in range(count)]


def again(
    program: Program, leaf: Leaf, expand: bool, variant: int = 0, stateful: bool = True
) -> tuple[Chooser, Run | None, str]:
    """Run the path of a leaf once more; the text says how it went otherwise, or is empty."""
    chooser = Chooser(prefix=leaf.choices, expand=expand, variant=variant)
    try:
        run = program.run(chooser)
    except Diverged as error:
        return chooser, None, str(error)
    now = tuple(float(point.row[point.taken]) for point in chooser.points)
    if now != leaf.p:
        size = max((abs(a - b) for a, b in zip(now, leaf.p, strict=False)), default=0.0)
        return chooser, run, f"{len(now)} choices for {len(leaf.p)}, probabilities differ by up to {size:.3g}"
    if canonical(dict(run.outcome)) != canonical(dict(leaf.outcome)):
        return chooser, run, f"outcome {canonical(dict(run.outcome))}"
    if stateful and run.digest != leaf.digest and not leaf.closed:
        return chooser, run, "state digest"
    return chooser, run, ""


def repeated(
    program: Program,
    leaves: Iterable[Leaf],
    expand: bool,
    variants: Sequence[int] = (0,),
    stateful: bool = True,
) -> dict[str, Any]:
    """Run each path once more in each variant: `{"checked", "different", "differences", "ok"}`.

    `different` counts all that differed, `differences` shows the first of them.
    """
    checked = 0
    differences: list[dict[str, Any]] = []
    for leaf in leaves:
        for variant in variants:
            _, _, fault = again(program, leaf, expand, variant, stateful)
            checked += 1
            if fault:
                differences.append({"choices": list(leaf.choices), "variant": variant, "what": fault})
    return {
        "checked": checked,
        "different": len(differences),
        "differences": differences[:SHOWN],
        "ok": not differences,
    }


def refilled(
    program: Program, leaves: Sequence[Leaf], expand: bool, count: int = SAMPLE, stateful: bool = True
) -> dict[str, Any]:
    """Fill rows past the first mismatch otherwise, on a sample of the leaves that have such rows.

    With `stateful`, what the engine's parts hold in the end must not differ either.
    """
    eligible = [leaf for leaf in leaves if leaf.filled and not leaf.closed]
    result = repeated(program, spaced(eligible, count), expand, (1, 2), stateful)
    return {"eligible": len(eligible), **result}


def confirmed(
    program: Program,
    leaves: Sequence[Leaf],
    expand: bool,
    count: int = SAMPLE,
    ends: Collection[int] = (),
) -> dict[str, Any]:
    """Really run a sample of the leaves that were told from a row, and `count` more of those in doubt."""
    closed = [leaf for leaf in leaves if leaf.closed]
    picked = [*doubtful(leaves, count, ends), *spaced(closed, count)]
    result = repeated(program, {leaf.choices: leaf for leaf in picked}.values(), expand)
    return {"closed": len(closed), **result}


def doubtful(leaves: Sequence[Leaf], count: int, ends: Collection[int] = ()) -> list[Leaf]:
    """At most `count` told leaves that may well be told wrong, the heaviest for each last choice.

    Those are the ones whose last choice is in `ends`, and those that end otherwise than most of their
    siblings: what the engine does at an end token or a stop is what an adapter may not know.
    """
    shapes: dict[Choices, Counter[Any]] = {}
    for leaf in leaves:
        shapes.setdefault(leaf.choices[:-1], Counter())[_shape(leaf)] += 1
    found: dict[int, Leaf] = {}
    for leaf in sorted(leaves, key=lambda leaf: -leaf.weight):
        siblings = shapes[leaf.choices[:-1]]
        is_odd = 2 * siblings[_shape(leaf)] <= siblings.total()
        if leaf.closed and (is_odd or leaf.choices[-1] in ends):
            found.setdefault(leaf.choices[-1], leaf)
    return spaced(list(found.values()), count)


def _shape(leaf: Leaf) -> tuple[Any, ...]:
    tokens = leaf.outcome.get("tokens")
    return tuple(leaf.outcome) if tokens is None else (len(tokens), leaf.outcome.get("finish"))


def walked(explorer: Explorer) -> dict[str, Any]:
    """What the walk itself noticed while it replayed prefixes."""
    finite = [difference.size for difference in explorer.differences if math.isfinite(difference.size)]
    return {
        "runs": explorer.runs,
        "different": len(explorer.differences),
        "differences": [
            {"choices": list(difference.choices), "what": difference.what}
            for difference in explorer.differences[:SHOWN]
        ],
        "largest": max(finite, default=0.0),
        "ok": not explorer.differences,
    }


def weighed(leaves: Sequence[Leaf], explorer: Explorer, whole: bool) -> dict[str, Any]:
    """Leaves and frontier sum to 1. Of a part of a tree nothing can be asked but to stay below 1."""
    total = math.fsum(leaf.weight for leaf in leaves)
    unexplored = explorer.unexplored()
    excess = abs(total + unexplored - 1.0) if whole else max(0.0, total - 1.0)
    return {"sum": total, "unexplored": unexplored, "whole": whole, "ok": excess <= SUM_TOLERANCE}


def undisturbed(program: Seeded, seeds: Iterable[int] = range(SEEDS)) -> dict[str, Any]:
    """The same seeds with wrappers around the real sampler and without them."""
    checked = 0
    differences: list[dict[str, Any]] = []
    for seed in seeds:
        checked += 1
        plain, wrapped = program.seeded(seed, False), program.seeded(seed, True)
        differences.extend({"seed": seed, "what": name} for name in plain if plain[name] != wrapped.get(name))
    return {
        "checked": checked,
        "different": len(differences),
        "differences": differences[:SHOWN],
        "ok": not differences and checked > 0,
    }


def against(
    leaves: Sequence[Leaf],
    reference: Iterable[tuple[Mapping[str, Any], float]],
    tolerance: float = ORACLE_TOLERANCE,
) -> dict[str, Any]:
    """The enumerated law beside the oracle's, outcome by outcome.

    What is unexplored may be of any outcome, so that a mass may lack all of it, but never be too large.
    """
    found = law(leaves)
    theirs = {canonical(dict(outcome)): p for outcome, p in reference}
    gaps = [(found.p.get(key, 0.0), theirs.get(key, 0.0)) for key in found.p.keys() | theirs]
    largest = max((max(p - q, q - p - found.slack) for p, q in gaps), default=0.0)
    return {
        "outcomes": len(theirs),
        "largest": max(0.0, largest),
        "ok": bool(theirs) and largest <= tolerance,
    }


def is_whole(roots: Sequence[Subtree]) -> bool:
    """Whether these subtrees are the whole tree."""
    return len(roots) == 1 and not roots[0].choices and not roots[0].exclude
