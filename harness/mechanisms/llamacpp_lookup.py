"""The schedule of llama-cpp-python's loop with prompt lookup, and what of it a hypothesis reads.

From `Llama.generate()`, which is the same in 0.3.19 and 0.3.35 here, and the end of `create_completion()`:
1. The prompt is evaluated by itself; later blocks are the last committed token and what the drafter found
   after it. The buffer is everything evaluated so far, unverified tokens included.
2. At each position in turn a token is drawn from the chain of samplers, whose first is the processors. It is
   handed to the caller, who may stop; the next position is used only if the buffer holds that token there.
3. At a mismatch, or after the last position, the buffer is cut to what is committed, and the next block
   begins.
4. When the caller has stopped, nothing is cut: `create_completion()` asks the stopping criteria once more,
   and shows them the buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.adapters.base import Adapter, Outcome, Prefix
from harness.mechanisms.base import Call, Leaf, lookup, opened_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Which reads are physical, that is of the buffer; the others are of the logical prefix."""

    processors: bool = False
    """What the processors are shown."""

    postcheck: bool = False
    """What the stopping criteria are shown in the end."""


class Kernel(Protocol):
    """What the schedule needs of the oracle's kernel; see `harness.adapters.llamacpp_kernel`."""

    def row(self, prefix: Prefix, shown: Sequence[Prefix] | None = None) -> Sequence[float]:
        """The law after a prefix, with what the processors were shown at each of its positions."""
        ...

    def end(self, prefix: Prefix, evaluated: Prefix | None = None) -> Outcome | None:
        """What is returned if the request ends with `prefix`, with what had been evaluated by then."""
        ...


def walk(
    kernel: Kernel, prompt: Prefix, max_ngram: int, max_tokens: int, context: int, reads: Reads
) -> Iterator[Leaf]:
    """Every way through a request, with its probability. `context` is the engine's room for tokens."""
    open_: list[tuple[Prefix, float, tuple[Prefix, ...]]] = [((), 1.0, ())]
    while open_:
        committed, weight, shown = open_.pop()
        ids = (*prompt, *committed)
        # The drafter is not asked before the first token is there.
        found = lookup(ids, max_ngram, max_tokens, len(ids)) if committed else iter(())
        candidate = next(found, ())[: context - len(ids)]
        buffer = (*committed, *candidate)
        for at in range(len(candidate) + 1):
            prefix = buffer[: len(committed) + at]
            shown = (*shown, buffer if reads.processors else prefix)
            row = kernel.row(prefix, shown if reads.processors else None)
            for token, probability in enumerate(row):
                if probability <= 0.0:
                    continue
                after, p = (*prefix, token), weight * probability
                outcome = kernel.end(after, buffer if reads.postcheck else None)
                if outcome is not None:
                    yield Leaf(outcome=outcome, p=p, calls=_calls(shown))
                elif token not in candidate[at : at + 1]:
                    open_.append((after, p, shown))
            if at == len(candidate) or row[candidate[at]] <= 0.0:
                break
            if kernel.end(buffer[: len(committed) + at + 1], None) is not None:
                break
            weight *= row[candidate[at]]


def _calls(shown: Sequence[Prefix]) -> tuple[Call, ...]:
    return tuple(Call(phase="verify", tokens=tokens) for tokens in shown)


def leaves(adapter: Adapter, reads: Reads) -> Iterator[Leaf]:
    """The loop on the open configuration, whose drafter can only be prompt lookup."""
    opened = opened_of(adapter)
    kernel: Kernel = adapter.kernel()  # type: ignore[assignment]
    return walk(
        kernel,
        opened.prompt,
        opened.drafter["max_ngram"],
        opened.drafter["max_tokens"],
        opened.on.llama.n_ctx(),
        reads,
    )
