"""The sequential law, level by level: all prefixes of one length go through the engine's parts together."""

from __future__ import annotations

from harness.adapters.base import Kernel, Prefix
from harness.oracle.naive import Law, ordered


def law(kernel: Kernel) -> Law:
    """Every outcome that sequential sampling can return, with its probability; see `naive.law`."""
    found: Law = []
    level: list[tuple[Prefix, float]] = [((), 1.0)]
    for _ in range(kernel.horizon):
        rows = kernel.rows([prefix for prefix, _ in level])
        children = [
            ((*prefix, token), mass * probability)
            for (prefix, mass), row in zip(level, rows, strict=True)
            for token, probability in enumerate(row)
            if probability > 0.0
        ]
        stops = kernel.stops([prefix for prefix, _ in children])
        found.extend(
            (kernel.outcome(prefix), mass)
            for (prefix, mass), stop in zip(children, stops, strict=True)
            if stop
        )
        level = [child for child, stop in zip(children, stops, strict=True) if not stop]
        if not level:
            return ordered(found)
    raise AssertionError(f"the engine's stopping rule goes on past the horizon {kernel.horizon}")
