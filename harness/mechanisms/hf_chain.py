"""Transformers' own processors on a schedule: as the engine keeps them, or as sequential decoding would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import transformers

from harness.adapters.base import Adapter, Kernel, Prefix
from harness.mechanisms import hf_assisted
from harness.mechanisms.base import Call, Leaf, Raised, opened_of
from harness.wire import UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.adapters.hf import Opened

UNCAPPED = frozenset({"5.12.0"})
"""Versions among our builds without step 6 of the schedule."""


@dataclass(slots=True, kw_only=True)
class Pieces:
    """The oracle's kernel of the open configuration, and the parts that it is made of."""

    opened: Opened
    kernel: Kernel
    rows: dict[Prefix, Sequence[float]] = field(default_factory=dict)
    stopped: dict[Prefix, bool] = field(default_factory=dict)
    scores: dict[Prefix, Any] = field(default_factory=dict)

    def processors(self) -> Any:
        """A fresh LogitsProcessorList, from the engine's own preparation of a request."""
        probe = self.opened.probe
        probe.capture = True
        try:
            return self.opened.generate(self.opened.config(False, 1)).processors
        finally:
            probe.capture = False

    def ids(self, prefix: Prefix) -> Any:
        """Prompt and prefix: (1, length)."""
        return torch.tensor([[*self.opened.prompt, *prefix]], dtype=torch.long)

    def logits(self, prefix: Prefix) -> Any:
        """The model's own scores after a prefix, as float32 (1, V), without its cache; a copy."""
        known = self.scores.get(prefix)
        if known is None:
            ids = self.ids(prefix)
            with torch.no_grad():
                found = self.opened.model(ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
            known = self.scores[prefix] = found[:, -1].to(dtype=torch.float32, copy=True)
        return known.clone()

    def placeholder(self) -> Any:
        """The scores with which the drafter asks: (1, V)."""
        return torch.ones((1, self.opened.model.config.vocab_size), dtype=torch.float32)

    def stops(self, prefix: Prefix) -> bool:
        """The kernel's stopping rule, remembered."""
        known = self.stopped.get(prefix)
        if known is None:
            (known,) = self.kernel.stops([prefix])
            self.stopped[prefix] = known
        return known

    def row(self, prefix: Prefix) -> Sequence[float]:
        """The kernel's row, asked for by itself as the slow oracle does, and remembered: (V,)."""
        known = self.rows.get(prefix)
        if known is None:
            (known,) = self.kernel.rows([prefix])
            self.rows[prefix] = known
        return known


def pieces_of(adapter: Adapter) -> Pieces:
    """The pieces of the open configuration; `JobError` (unsupported) without prompt lookup."""
    opened: Opened = opened_of(adapter)
    if opened.drafter is None or opened.drafter["kind"] != "prompt-lookup":
        raise JobError(UNSUPPORTED, "the hypotheses about this engine speak of prompt lookup alone")
    return Pieces(opened=opened, kernel=adapter.kernel())


@dataclass(slots=True, kw_only=True)
class Kept:
    """The processors as this engine has them: one list a request, which sees every call and forgets none.

    At a fork the calls so far are made again on a fresh list, because not every processor can be copied.
    """

    pieces: Pieces
    made: list[tuple[Call, bool]] = field(default_factory=list)
    """Calls so far; true for the first about a continuation."""

    processors: Any = None
    asked: Any = None
    """The scores of the drafter's questions about one continuation: the same tensor, which a processor may
    write into."""

    def fork(self) -> Kept:
        return Kept(pieces=self.pieces, made=list(self.made))

    def allows(self, prefix: Prefix, token: int, first: bool) -> bool:
        score = self._next(Call(phase="propose", tokens=prefix), first)[0, token].item()
        return score not in (-float("inf"), torch.finfo(torch.float32).min)

    def row(self, prefix: Prefix) -> Sequence[float]:
        return law_of(self._next(Call(phase="verify", tokens=prefix), False))

    def calls(self) -> tuple[Call, ...]:
        return tuple(call for call, _ in self.made)

    def _next(self, call: Call, first: bool) -> Any:
        if self.processors is None:
            self.processors = self.pieces.processors()
            for earlier, begins in self.made:
                self._call(earlier, begins)
        self.made.append((call, first))
        try:
            return self._call(call, first)
        except Exception as error:  # whatever a processor raises ends the request with it
            raise Raised(type(error).__name__) from error

    def _call(self, call: Call, first: bool) -> Any:
        if call.phase == "propose" and first:
            self.asked = self.pieces.placeholder()
        scores = self.asked if call.phase == "propose" else self.pieces.logits(call.tokens)
        with torch.no_grad():
            return self.processors(self.pieces.ids(call.tokens), scores)


@dataclass(slots=True, kw_only=True)
class Replayed:
    """The processors as sequential decoding would have them at each prefix, whatever was called before."""

    pieces: Pieces

    def fork(self) -> Replayed:
        return self

    def allows(self, prefix: Prefix, token: int, first: bool) -> bool:
        processors, pieces = self.pieces.processors(), self.pieces
        with torch.no_grad():
            for length in range(len(prefix)):
                processors(pieces.ids(prefix[:length]), pieces.logits(prefix[:length]))
            score = processors(pieces.ids(prefix), pieces.placeholder())[0, token].item()
        return score not in (-float("inf"), torch.finfo(torch.float32).min)

    def row(self, prefix: Prefix) -> Sequence[float]:
        return self.pieces.row(prefix)

    def calls(self) -> tuple[Call, ...]:
        return ()


def law_of(scores: Any) -> Sequence[float]:
    """Float64 softmax of one row of scores (1, V), as the kernel takes it."""
    row: list[float] = torch.softmax(scores.to(torch.float64), dim=-1)[0].tolist()
    return row


def leaves(adapter: Adapter, logical: bool) -> Iterator[Leaf]:
    """Assisted decoding of the open configuration, with the engine's processors kept or replayed."""
    pieces = pieces_of(adapter)
    opened = pieces.opened
    assert opened.drafter is not None
    request = hf_assisted.Request(
        prompt=opened.prompt,
        horizon=opened.horizon,
        ends=frozenset(opened.ends),
        max_ngram=opened.drafter["max_ngram"],
        max_tokens=opened.drafter["max_tokens"],
        capped=transformers.__version__ not in UNCAPPED,
        stops=pieces.stops,
        outcome=opened.outcome,
        logical=logical,
    )
    chain: hf_assisted.Chain = Replayed(pieces=pieces) if logical else Kept(pieces=pieces)
    return hf_assisted.leaves(request, chain)


def about(adapter: Adapter, logical: bool, processor: str) -> Iterator[Leaf]:
    """The same, if the engine prepares a processor of that class; else `JobError` (unsupported)."""
    prepared = [type(each).__name__ for each in pieces_of(adapter).processors()]
    if processor not in prepared:
        raise JobError(UNSUPPORTED, f"there is no {processor} among the processors: {prepared}")
    return leaves(adapter, logical)
