"""The sequential kernel of a Transformers configuration, from the parts that `generate()` prepares.

(A1) The settings are the off arm's own. (A2) `generate()` itself makes the processors, once for each call of
`rows`, and is stopped before it samples; they see committed prefixes only. (A3) They are replayed along each
prefix from the first call, each time with the model's uncached logits. (A4) The criteria are the ones that
`generate()` prepared for its speculation-off loop.

The engine's own processors take a batch row by row. Of a user's classes that is not known, so with any of
them each prefix gets instances of its own, and the criteria are replayed along it as the processors are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from harness.adapters.base import Entry, Outcome, Prefix
from harness.adapters.hf_intercept import Prepared
from harness.adapters.records import Rows
from harness.wire import UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.adapters.hf import Opened

MAX_ROWS = 4096
"""Prefixes in one batch."""


class HfKernel:
    """See `harness.adapters.base.Kernel`."""

    __slots__ = ("_opened", "horizon")

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.horizon = opened.horizon
        if not opened.config(False, 1).do_sample:
            raise JobError(UNSUPPORTED, "the oracle enumerates multinomial sampling; do_sample is off")

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        """Float64 softmax of the processed float32 row after each prefix: (n, V)."""
        result: list[list[float]] = []
        for chunk in self._chunks(prefixes):
            result.extend(torch.softmax(self._scores(chunk).to(torch.float64), dim=-1).tolist())
        return result

    def records(self, prefixes: Sequence[Prefix]) -> list[Entry]:
        """The documented entry of `scores` after each prefix, by teacher-forced replay: (n,).

        "Processed prediction scores of the language modeling head (scores for each vocabulary token before
        SoftMax) at each generation step": the processed float32 row of the prefix.
        """
        result: list[Entry] = []
        for chunk in self._chunks(prefixes):
            result.extend(Rows().entries(list(self._scores(chunk).numpy())))
        return result

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """What the engine's stopping criteria say of each committed prefix: (n,)."""
        result: list[bool] = []
        for chunk in self._chunks(prefixes):
            criteria, sequences = self._prepare(len(chunk)).criteria, self._sequences(chunk)
            if self._opened.own.stopping:
                for length in range(len(self._opened.prompt) + 1, sequences.shape[1]):
                    criteria(sequences[:, :length], None)
            result.extend(criteria(sequences, None).tolist())
        return result

    def outcome(self, prefix: Prefix) -> Outcome:
        """The adapter's return map."""
        return self._opened.outcome(prefix)

    def _prepare(self, rows: int) -> Prepared:
        """Fresh processors and criteria from the engine's own preparation of a request of `rows` rows."""
        probe = self._opened.probe
        probe.capture = True
        try:
            prepared: Prepared = self._opened.generate(self._opened.config(False, rows))
        finally:
            probe.capture = False
        return prepared

    def _sequences(self, prefixes: Sequence[Prefix]) -> Any:
        return torch.tensor([[*self._opened.prompt, *prefix] for prefix in prefixes], dtype=torch.long)

    def _scores(self, prefixes: Sequence[Prefix]) -> Any:
        """The processed float32 row after each prefix: (n, V)."""
        prepared, sequences = self._prepare(len(prefixes)), self._sequences(prefixes)
        model, start = self._opened.model, len(self._opened.prompt)
        scores: Any = None
        with torch.no_grad():
            for length in range(start, sequences.shape[1] + 1):
                prefix = sequences[:, :length]
                logits = model(prefix, attention_mask=torch.ones_like(prefix), use_cache=False).logits
                # A copy, as in the engine's loop: processors may write into what they are given.
                scores = prepared.processors(prefix, logits[:, -1].to(dtype=torch.float32, copy=True))
        return scores

    def _chunks(self, prefixes: Sequence[Prefix]) -> list[Sequence[Prefix]]:
        own = self._opened.own
        size = 1 if own.processors or own.stopping else MAX_ROWS
        return [prefixes[at : at + size] for at in range(0, len(prefixes), size)]
