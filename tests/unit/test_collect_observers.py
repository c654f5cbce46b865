"""Requests with and without observers: what is compared, what is refused, and which seeds are free for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from prereg.codec.overlap import Span
from prereg.collect.observers import SEEN, compare_observed
from prereg.collect.rehearse import free_seeds
from prereg.collect.worker import Worker
from prereg.errors import EngineFailed

ARM = {"id": "on", "role": "test", "speculation": True}


def trace(seed: str) -> dict[str, Any]:
    tokens = [int(seed) % 7]
    record = [{"tokens": [0], "values": ["-inf"]}]
    return {"outcome": {"tokens": tokens, "finish": None}, "record": record, "calls": 3, "state": "ab"}


class Replying:
    """A worker whose traces are the same either way, but for one part of one seed's."""

    def __init__(self, seed: str = "", part: str = "") -> None:
        self.seed, self.part = seed, part
        self.asked: list[bool] = []

    def call(self, op: str, *, silence: float, arm: Any, seeds: list[str], observed: bool) -> Any:
        assert (op, arm, silence) == ("trace", ARM, 9.0)
        self.asked.append(observed)
        traces = {seed: trace(seed) for seed in seeds}
        if observed and self.seed:
            traces[self.seed][self.part] = "another"
        return {"traces": list(traces.values())}


def compare(worker: Replying) -> None:
    compare_observed(cast(Worker, worker), "case", ARM, [5, 6], 9.0)


def test_equal_requests_pass_and_both_ways_were_asked_for() -> None:
    worker = Replying()
    compare(worker)
    assert sorted(worker.asked) == [False, True]


@pytest.mark.parametrize("part", SEEN)
def test_any_part_that_differs_is_refused_with_its_name(part: str) -> None:
    with pytest.raises(EngineFailed, match=rf"case: .*seed 6 gives another {part} with") as caught:
        compare(Replying(seed="6", part=part))
    assert caught.value.where == "protocol.json#/configurations (case)"


def span(first: int, end: int) -> Span:
    return Span(study="s", block="b", first=first, end=end)


def test_the_seeds_are_free_at_32_bits_whatever_lies_between() -> None:
    assert free_seeds([], 3) == [0, 1, 2]
    assert free_seeds([span(0, 2), span(3, 5)], 4) == [2, 5, 6, 7]
    assert free_seeds([span(2**32, 2**32 + 2)], 2) == [2, 3]
