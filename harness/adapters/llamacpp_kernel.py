"""The sequential kernel of a llama-cpp-python configuration: the engine's samplers, put together here.

(A1) The chain follows `Llama._init_sampler()` line by line (`harness.adapters.llamacpp_mirror`), with the off
arm's own settings. (A2) Processors are fresh for every prefix and see committed prefixes only. (A3) They, and
the engine's samplers that remember what was accepted, are replayed along the prefix from the first call, each
time with the logits of an evaluation from nothing. (A4) The stopping rules are the method's own, one token at
a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np
import numpy.typing as npt
from llama_cpp import _internals

from harness.adapters import llamacpp_mirror
from harness.adapters.base import Outcome, Prefix
from harness.adapters.llamacpp_features import GENERATE
from harness.wire import UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.adapters.llamacpp import Opened

MAX_REMEMBERED = 25_000_000
"""Logits that are kept, of as many prefixes as that makes."""

TOKEN_DATA = np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)], align=True)

Logits = npt.NDArray[np.float32]


class LlamaCppKernel:
    """See `harness.adapters.base.Kernel`."""

    __slots__ = ("_logits", "_opened", "horizon")

    def __init__(self, opened: Opened) -> None:
        llamacpp_mirror.check()
        features = opened.features
        if features.value("temperature") == 0.0:
            raise JobError(UNSUPPORTED, "the oracle enumerates sampling; at temperature 0 there is none")
        if features.value("mirostat_mode", 0) != 0:
            raise JobError(UNSUPPORTED, "the oracle does not know Mirostat, which draws inside its sampler")
        if features.value("logit_bias") is not None and features.processors:
            # `logits_processor.extend(...)` returns None: the engine then calls neither.
            raise JobError(UNSUPPORTED, "this engine drops processors that come with a logit_bias")
        self._opened = opened
        self._logits: dict[Prefix, Logits] = {}
        self.horizon = opened.horizon

    def rows(self, prefixes: Sequence[Prefix]) -> list[list[float]]:
        """Float64 softmax of what the chain leaves of the logits after each prefix: (n, V)."""
        return [self.row(prefix) for prefix in prefixes]

    def stops(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """Whether the method returns after each prefix: (n,)."""
        return [self.end(prefix) is not None for prefix in prefixes]

    def outcome(self, prefix: Prefix) -> Outcome:
        """The adapter's return map. Where generation goes on (a window asks): what has been drawn."""
        outcome = self.end(prefix)
        return {"tokens": list(prefix), "finish": None} if outcome is None else outcome

    def row(self, prefix: Prefix, shown: Sequence[Prefix] | None = None) -> list[float]:
        """The same for one prefix: (V,). `shown` replaces what the processors see after the prompt.

        It has one entry for each call, from the empty prefix to `prefix`; those prefixes unless given.
        """
        opened, processors = self._opened, self._opened.features.fresh()
        bias = opened.features.value("logit_bias") or {}
        cells: npt.NDArray[Any] = np.empty(0, dtype=TOKEN_DATA)
        with self._chain() as chain:
            for length in range(len(prefix) + 1):
                seen = prefix[:length] if shown is None else shown[length]
                ids = np.array([*opened.prompt, *seen], dtype=np.intc)
                scores = self._evaluated(prefix[:length]).copy()
                for processor in processors:
                    scores[:] = processor(ids, scores)
                for token, amount in bias.items():
                    scores[token] += np.float32(amount)
                cells = _applied(chain, scores)
                if length < len(prefix):
                    chain.accept(prefix[length])
        row = np.zeros(len(opened.vocab))
        logits = cells["logit"].astype(np.float64)
        row[cells["id"]] = np.exp(logits - logits.max())
        probabilities: list[float] = (row / row.sum()).tolist()
        return probabilities

    def _evaluated(self, prefix: Prefix) -> Logits:
        """The model's logits after the prefix, evaluated from nothing: (V,)."""
        known = self._logits.get(prefix)
        if known is None:
            llama = self._opened.off.llama
            llama.reset()
            type(llama).eval(llama, [*self._opened.prompt, *prefix])
            # One row, or one for every token of this evaluation.
            rows = llama.n_tokens if llama._logits_all else 1
            shape = (rows, len(self._opened.vocab))
            known = np.ctypeslib.as_array(llama._ctx.get_logits(), shape=shape)[-1].copy()
            llama.reset()
            if (len(self._logits) + 1) * known.size <= MAX_REMEMBERED:
                self._logits[prefix] = known
        return known

    @contextmanager
    def _chain(self) -> Iterator[Any]:
        """The chain without its last sampler, the one that draws."""
        opened, value = self._opened, self._opened.features.value
        chain = _internals.LlamaSampler()
        # Versions differ in whether this sampler is told the size of the vocabulary.
        sized = {"n_vocab": len(opened.vocab)} if _is_sized() else {}
        chain.add_penalties(
            **sized,
            penalty_last_n=opened.off.llama.last_n_tokens_size,
            penalty_repeat=value("repeat_penalty"),
            penalty_freq=value("frequency_penalty", 0.0),
            penalty_present=value("presence_penalty", 0.0),
        )
        if value("grammar") is not None:
            chain.add_grammar(opened.off.llama._model, value("grammar"))
        temperature = value("temperature")
        if temperature > 0.0:
            chain.add_top_k(value("top_k"))
            chain.add_typical(value("typical_p"), 1)
            chain.add_top_p(value("top_p"), 1)
            chain.add_min_p(value("min_p"), 1)
            chain.add_temp(temperature)
        try:
            yield chain
        finally:
            chain.close()

    def end(self, prefix: Prefix, evaluated: Prefix | None = None) -> Outcome | None:
        """What the caller gets if the method returns when it has drawn `prefix`; None if it goes on.

        `evaluated` replaces what the criteria see of it when they are asked once more in the end: all of it
        but the last token unless given, since that is drawn and not evaluated.
        """
        opened = self._opened
        criteria = opened.features.criteria()
        hit = False
        for length in range(len(prefix) if criteria else 0):
            # Asked about the context of each token, before that token is handed out.
            hit = self._met(criteria, prefix[:length])
        if not hit:
            outcome = opened.returned(prefix)
        elif opened.features.api == GENERATE:
            outcome = {"tokens": list(prefix[:-1]), "finish": None}
        else:
            outcome = {"tokens": [], "finish": "length"}
        if outcome is None or not criteria or opened.features.api == GENERATE:
            return outcome
        if self._met(criteria, prefix[:-1] if evaluated is None else evaluated):
            # Asked once more in the end, it may overrule everything, a stop string's cut included.
            body = prefix[:-1] if hit or prefix[-1] in opened.ends else prefix
            return {"tokens": list(body), "finish": "stop"}
        return outcome

    def _met(self, criteria: Sequence[Any], prefix: Prefix) -> bool:
        ids = np.array([*self._opened.prompt, *prefix], dtype=np.intc)
        logits = np.zeros(len(self._opened.vocab), dtype=np.float32)
        # All of them are asked, as the engine's list does: they may keep count.
        answers = [bool(criterion(ids, logits)) for criterion in criteria]
        return any(answers)


def _is_sized() -> bool:
    return "n_vocab" in _internals.LlamaSampler.add_penalties.__code__.co_varnames


def _applied(chain: Any, scores: Logits) -> npt.NDArray[Any]:
    """What the chain leaves of these logits: cells of token, logit and p."""
    cells = np.zeros(len(scores), dtype=TOKEN_DATA)
    cells["id"], cells["logit"] = np.arange(len(scores)), scores
    data = cells.ctypes.data_as(llama_cpp.llama_token_data_p)
    array = llama_cpp.llama_token_data_array(data=data, size=len(cells), selected=-1, sorted=False)
    llama_cpp.llama_sampler_apply(chain.sampler, ctypes.byref(array))
    kept = (llama_cpp.llama_token_data * array.size).from_address(ctypes.addressof(array.data.contents))
    return np.frombuffer(kept, dtype=TOKEN_DATA).copy()
