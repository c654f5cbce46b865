"""The sequential law, level by level: all prefixes of one length go through the engine's parts together."""

from __future__ import annotations

from harness.adapters.base import Kernel, Prefix
from harness.oracle.naive import Law, ordered


class TooLarge(Exception):
    """There are more prefixes than were to be looked at."""


def law(kernel: Kernel, most: int | None = None) -> Law:
    """Every outcome that sequential sampling can return, with its probability; see `naive.law`.

    Raises TooLarge before more than `most` prefixes have been put to the engine.
    """
    found: Law = []
    seen = 0
    level: list[tuple[Prefix, float]] = [((), 1.0)]
    for _ in range(kernel.horizon):
        seen += len(level)
        if most is not None and seen > most:
            raise TooLarge
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
