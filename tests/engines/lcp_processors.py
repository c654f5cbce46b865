"""Processors and stopping criteria of a user's own, loaded by the engine tests from this file."""

from __future__ import annotations

from typing import Any


class Last:
    """Lowers the last token that it is shown."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        scores[int(input_ids[-1])] -= 2.0
        return scores


class Counting:
    """Raises another token at each call, counting its own calls: it need not look at the prefix."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.calls = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.calls += 1
        scores[self.calls % len(scores)] += self.step
        return scores


class Forgetful:
    """Counts the calls of all its instances: a request leaves something to the next."""

    calls: list[int] = []  # noqa: RUF012

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.calls.append(len(input_ids))
        scores[len(self.calls) % len(scores)] += 1.0
        return scores


class Raising:
    """Cannot be called."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        raise ValueError("no")


class StopAt:
    """Ends a request once so many tokens are there, prompt included."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: Any, logits: Any) -> bool:
        return len(input_ids) >= self.length
