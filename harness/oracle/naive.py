"""The sequential law by its definition: one prefix at a time, each with processors of its own.

The slow twin of `harness.oracle.enumerate`; both must return the same law.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import TypeAlias

from harness.adapters.base import Kernel, Outcome, Prefix

Law: TypeAlias = list[tuple[Outcome, float]]


def law(kernel: Kernel) -> Law:
    """Every outcome that sequential sampling can return, with its probability (float64, above 0).

    P(y) is the product over t of K(y_t | y_<t) along the path from the empty prefix to the prefix where the
    engine's own stopping rule ends it. Sorted by the canonical JSON of the outcome.
    """
    found: Law = []
    _walk(kernel, (), 1.0, found)
    return ordered(found)


def _walk(kernel: Kernel, prefix: Prefix, mass: float, found: Law) -> None:
    if prefix and kernel.stops([prefix])[0]:
        found.append((kernel.outcome(prefix), mass))
        return
    if len(prefix) >= kernel.horizon:
        raise AssertionError(f"the engine's stopping rule goes on past the horizon {kernel.horizon}")
    (row,) = kernel.rows([prefix])
    for token, probability in enumerate(row):
        if probability > 0.0:
            _walk(kernel, (*prefix, token), mass * probability, found)


def ordered(found: Iterable[tuple[Outcome, float]]) -> Law:
    """Sort a law by the canonical JSON of its outcomes, and leave out what underflowed to probability 0.

    Prefixes that the return map does not tell apart are one outcome, with the correctly rounded sum.
    """
    masses: dict[str, tuple[Outcome, list[float]]] = {}
    for outcome, mass in found:
        masses.setdefault(canonical(outcome), (outcome, []))[1].append(mass)
    summed = [(outcome, math.fsum(parts)) for _, (outcome, parts) in sorted(masses.items())]
    return [(outcome, mass) for outcome, mass in summed if mass > 0.0]


def canonical(outcome: Outcome) -> str:
    """RFC 8785 text of an outcome. Its keys are ASCII and its numbers integers, so sorted keys are enough."""
    return json.dumps(outcome, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
