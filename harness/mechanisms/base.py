"""What every hypothesis is made of, whatever the engine: leaves, their law, and the two ways to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.adapters.base import ENGINES, Adapter, Arm, Outcome, Prefix
from harness.oracle.naive import Law, ordered
from harness.wire import UNSUPPORTED, JobError

ON = Arm(id="on", role="test", speculation=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the processors."""

    phase: str
    """`propose`: the drafter asks, with scores that no model computed; `verify`: to sample from."""

    tokens: Prefix
    """What they were shown after the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One way through a request under a hypothesis."""

    outcome: Outcome
    p: float
    calls: tuple[Call, ...]
    """Every call of the processors, in order."""


class Raised(Exception):
    """A part of the engine raised; `args[0]` is the type's name. For the request that is a crash."""


Walk: TypeAlias = Callable[[Adapter, bool], Iterator[Leaf]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A suspected fault, as something that can be run."""

    name: str
    adapter: str
    """Whose engine it speaks of: a name in `harness.adapters.base.ENGINES`."""

    statement: str
    """What goes wrong, and where in the engine's code."""

    leaves: Walk
    """All leaves of the open configuration. The flag is the switch: read every speculation-sensitive value
    (a processor's state, the prefix that it is shown, the stopping rule) as sequential decoding would.
    Raises `JobError` (unsupported) for a configuration that the hypothesis does not speak of."""

    def law(self, adapter: Adapter, logical: bool = False) -> Law:
        """The law of the open configuration under this hypothesis, in the oracle's order.

        With `logical` it is the sequential law, which shows that only those reads make the difference.
        """
        if type(adapter).__name__ != ENGINES[self.adapter].factory:
            raise JobError(UNSUPPORTED, f"{self.name} speaks of another engine")
        return ordered((leaf.outcome, leaf.p) for leaf in self.leaves(adapter, logical))


def lookup(ids: Sequence[int], max_ngram: int, max_tokens: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Continuations that prompt lookup considers after `ids`: longest n-gram first, then leftmost.

    Each is what followed an earlier occurrence of the last tokens: at most `max_tokens`, none of them at
    position `limit` or later. Both engines' drafters search like this (Transformers,
    `PromptLookupCandidateGenerator`; llama-cpp-python, `LlamaPromptLookupDecoding`).
    """
    length = len(ids)
    for size in range(min(max_ngram, length - 1), 0, -1):
        for at in range(length - size + 1):
            start = at + size
            end = min(start + max_tokens, length, limit)
            if tuple(ids[at:start]) == tuple(ids[length - size :]) and start < end:
                yield tuple(ids[start:end])


def first_mismatch(
    candidate: Sequence[int], rows: Sequence[Sequence[float]]
) -> Iterator[tuple[Prefix, float]]:
    """What sample-and-match commits of a verified block, with its probability.

    Of `len(candidate) + 1` rows: the proposed tokens up to the first that was not drawn, and what was drawn
    in its place; or all of them and one more.
    """
    weight = 1.0
    for at, row in enumerate(rows):
        hoped = candidate[at] if at < len(candidate) else None
        for token, probability in enumerate(row):
            if token != hoped and probability > 0.0:
                yield (*candidate[:at], token), weight * probability
        if hoped is None or row[hoped] <= 0.0:
            return
        weight *= row[hoped]


def opened_of(adapter: Adapter) -> Any:
    """What an adapter holds of its open configuration, with its drafter; `JobError` if it has none."""
    return adapter.program(ON).opened  # type: ignore[attr-defined]
