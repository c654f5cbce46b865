"""That an adapter's observers change nothing: the same seeded requests with them and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prereg.collect.worker import Worker
from prereg.errors import EngineFailed

REQUESTS = 4
"""Requests of a configuration that are made both ways."""

SEEN = ("outcome", "record", "calls", "state")
"""What is compared of a request: what it returned, how often it called the model, what it left behind."""


def compare_observed(
    worker: Worker, name: str, arm: Mapping[str, Any], seeds: Sequence[int], silence: float
) -> None:
    """Make each request of the open configuration with the counting observers and without them.

    Raises EngineFailed if anything that can be seen of a request differs, and what `Worker.call` raises.
    """
    observed, plain = (
        worker.call("trace", silence=silence, arm=arm, seeds=[str(seed) for seed in seeds], observed=watched)[
            "traces"
        ]
        for watched in (True, False)
    )
    for seed, with_them, without in zip(seeds, observed, plain, strict=True):
        differing = [part for part in SEEN if with_them[part] != without[part]]
        if differing:
            raise EngineFailed(
                f"{name}: the counting observers change what they observe: seed {seed} gives another "
                f"{' and '.join(differing)} with them than without",
                where=f"protocol.json#/configurations ({name})",
                next_step="mend the observers in harness/adapters, then prereg check",
            )
