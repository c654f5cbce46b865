"""Teacher-forced replay: the documented record after each prefix that sequential decoding can reach."""

from __future__ import annotations

from collections.abc import Iterator

from harness.adapters.base import Entry, Kernel, Prefix, offered


def references(kernel: Kernel) -> Iterator[tuple[Prefix, Entry]]:
    """Every prefix at which a token is still to be drawn, the empty one first, with the kernel's entry there.

    Level by level like `harness.oracle.enumerate`; a prefix that ended, or is as long as the horizon, has
    none. Raises `JobError` (unsupported) if the engine's kernel knows of no documented record.
    """
    documented = offered(kernel, "records")
    level: list[Prefix] = [()]
    for _ in range(kernel.horizon):
        if not level:
            return
        yield from zip(level, documented(level), strict=True)
        children = [
            (*prefix, token)
            for prefix, row in zip(level, kernel.rows(level), strict=True)
            for token, probability in enumerate(row)
            if probability > 0.0
        ]
        stops = kernel.stops(children)
        level = [child for child, stop in zip(children, stops, strict=True) if not stop]
