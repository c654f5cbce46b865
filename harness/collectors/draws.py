"""Draws: one request to the engine for each seed, in order, each reported as soon as it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from harness.adapters.base import Adapter, Arm, Draw


def collect(adapter: Adapter, arm: Arm, seeds: Sequence[str], rows: int) -> Iterator[dict[str, Any]]:
    """Yield `{"seed", "draws": [{"outcome", "counters"}, ...]}` for each seed, with `rows` draws each.

    A draw has `record` too where the configuration asks for records. Raises what `Adapter.draws` raises.
    """
    for seed in seeds:
        draws = adapter.draws(arm, seed, rows)
        if len(draws) != rows:
            raise AssertionError(f"{len(draws)} draws for a request of {rows}")
        yield {"seed": seed, "draws": [_said(draw) for draw in draws]}


def _said(draw: Draw) -> dict[str, Any]:
    said: dict[str, Any] = {"outcome": draw.outcome, "counters": asdict(draw.counters)}
    return said if draw.record is None else {**said, "record": draw.record}
