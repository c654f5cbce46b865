"""What stands between Transformers and the chooser while one request runs.

Processors are watched through `__call__` of their classes, since the engine compares their types; models and
candidate generators through attributes of the instance. A stack takes all of it off again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.choices.hf_uniform import Uniforms
from harness.choices.note import Call, Note
from harness.choices.tree import Chooser, Row, normalised


class Unaccounted(BaseException):
    """The engine drew at random past the chooser. Not an `Exception`, so that the engine cannot catch it."""


@dataclass(slots=True, kw_only=True)
class Request:
    """What is known of the request that is running."""

    chooser: Chooser | None
    hashed: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    processors: list[Any] = field(default_factory=list)
    criteria: list[Any] = field(default_factory=list)
    proposing: bool = False
    """A draft model is running."""

    generating: bool = False
    """The candidate generator is running."""

    candidate: list[int] = field(default_factory=list)
    committed: list[int] | None = None
    """Tokens after the prompt, as the engine last handed them to its candidate generator."""

    chosen: list[int] = field(default_factory=list)
    """Tokens chosen since."""

    drafted: list[Row] = field(default_factory=list)
    """The draft model's row for each candidate token."""

    verdicts: list[bool] = field(default_factory=list)
    """Acceptance draws of this round."""

    calls: int = 0
    trace: list[Call] | None = None
    stops: list[Call] | None = None

    def prefix(self) -> tuple[int, ...]:
        return (*(self.committed or ()), *self.chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Installs the replacements of one request; `stack` takes them off again."""

    request: Request
    prompt: tuple[int, ...]
    stack: contextlib.ExitStack

    def torch(self) -> None:
        """Replace the two random functions of torch."""
        thread = threading.get_ident()
        multinomial, rand_like = torch.multinomial, torch.rand_like

        def choose(input: Any, num_samples: int, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return multinomial(input, num_samples, *args, **kwargs)
            rows = _rows(input, num_samples)
            if self.request.chooser is None or rows is None:
                # Not a law (the engine's own error follows), or not being steered.
                return multinomial(input, num_samples, *args, **kwargs)
            tokens = self._tokens(rows, self.request.chooser)
            return torch.tensor(tokens, dtype=torch.long, device=input.device).reshape(*input.shape[:-1], 1)

        def draw(input: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return rand_like(input, *args, **kwargs)
            if self.request.chooser is None:
                return Uniforms.around(rand_like(input, *args, **kwargs), None)
            return Uniforms.around(torch.zeros_like(input, *args, **kwargs), self._below)

        self._set(torch, "multinomial", choose)
        self._set(torch, "rand_like", draw)

    def _tokens(self, rows: Sequence[Row], chooser: Chooser) -> list[int]:
        request = self.request
        for row in rows:
            request.hashed.update(row.tobytes())
        prefix, candidate = request.prefix(), request.candidate
        if request.proposing:
            notes = [Note(prefix=prefix, candidate=None, row=0, rows=1, calls=request.calls)]
            tokens = [chooser.choose(row, "drafter", notes[0]) for row in rows]
            request.drafted.extend(rows)
            request.chosen.extend(tokens)
            return tokens
        if request.verdicts:
            kept = (*request.verdicts, False).index(False)
            prefix = (*prefix, *candidate[:kept])
            kind = "residual" if kept < len(candidate) else "bonus"
            note = Note(prefix=prefix, candidate=None, row=kept, rows=len(candidate) + 1, calls=request.calls)
            return [chooser.choose(row, kind, note) for row in rows]
        if len(rows) != len(candidate) + 1:
            candidate = []
        notes = [
            Note(
                prefix=(*prefix, *candidate[:at]),
                candidate=candidate[at] if at < len(candidate) else None,
                row=at,
                rows=len(rows),
                calls=request.calls,
            )
            for at in range(len(rows))
        ]
        tokens = chooser.block(rows, candidate, "token", notes)
        if request.committed is None:
            request.chosen.extend(tokens)
        return tokens

    def _below(self, thresholds: Sequence[float]) -> list[bool]:
        """Choose for each threshold whether a uniform is below it."""
        request = self.request
        assert request.chooser is not None
        prefix, candidate = request.prefix(), request.candidate
        notes = [
            Note(
                prefix=(*prefix, *candidate[:at]),
                candidate=candidate[at] if at < len(candidate) else None,
                row=at,
                rows=len(candidate) + 1,
                calls=request.calls,
            )
            for at in range(len(thresholds))
        ]
        # A comparison with NaN is false.
        chances = [min(1.0, max(0.0, value)) if value == value else 0.0 for value in thresholds]
        request.hashed.update(repr(chances).encode())
        request.verdicts = request.chooser.accepts(chances, "accept", notes)
        return request.verdicts

    def model(self, model: Any, name: str) -> None:
        """Watch the processors that a model prepares."""
        prepare = model._get_logits_processor
        request = self.request

        def _get_logits_processor(*args: Any, **kwargs: Any) -> Any:
            processors = prepare(*args, **kwargs)
            for processor in processors:
                if all(processor is not known for known in request.processors):
                    request.processors.append(processor)
                    self._watch(type(processor))
            return processors

        self._set(model, "_get_logits_processor", functools.wraps(prepare)(_get_logits_processor))
        if name == "drafter":
            self._flag(model, "generate")

    def _flag(self, model: Any, name: str) -> None:
        original = getattr(model, name)

        @functools.wraps(original)
        def flagged(*args: Any, **kwargs: Any) -> Any:
            self.request.proposing = True
            try:
                return original(*args, **kwargs)
            finally:
                self.request.proposing = False

        self._set(model, name, flagged)

    def _watch(self, kind: type[Any]) -> None:
        """Note every call of a processor class. Its type stays what it is: the engine compares types."""
        if getattr(kind.__call__, "_watched_by", None) is self.request:
            return
        original, request = kind.__call__, self.request

        # The signature stays too: the engine looks at it to see what a processor takes.
        @functools.wraps(original)
        def watched(processor: Any, input_ids: Any, scores: Any, *args: Any, **kwargs: Any) -> Any:
            request.calls += 1
            request.hashed.update(kind.__name__.encode())
            hash_tensor(request.hashed, input_ids)
            hash_tensor(request.hashed, scores)
            if request.trace is not None:
                request.trace.append(self._call(kind.__name__, input_ids))
            result = original(processor, input_ids, scores, *args, **kwargs)
            hash_tensor(request.hashed, result)
            return result

        vars(watched)["_watched_by"] = request
        self._set(kind, "__call__", watched)

    def criteria(self, model: Any) -> None:
        """Watch the stopping criteria that a model prepares."""
        prepare, request = model._get_stopping_criteria, self.request

        def _get_stopping_criteria(*args: Any, **kwargs: Any) -> Any:
            criteria = prepare(*args, **kwargs)
            for criterion in criteria:
                if all(criterion is not known for known in request.criteria):
                    request.criteria.append(criterion)
                    self._watch_criterion(type(criterion))
            return criteria

        self._set(model, "_get_stopping_criteria", functools.wraps(prepare)(_get_stopping_criteria))

    def _watch_criterion(self, kind: type[Any]) -> None:
        if getattr(kind.__call__, "_watched_by", None) is self.request:
            return
        original, request = kind.__call__, self.request

        @functools.wraps(original)
        def watched(criterion: Any, input_ids: Any, scores: Any, *args: Any, **kwargs: Any) -> Any:
            if request.stops is not None:
                request.stops.append(self._call(kind.__name__, input_ids))
            return original(criterion, input_ids, scores, *args, **kwargs)

        vars(watched)["_watched_by"] = request
        self._set(kind, "__call__", watched)

    def _call(self, name: str, input_ids: Any) -> Call:
        request, tokens = self.request, tuple(input_ids[0].tolist())
        continues = tokens[: len(self.prompt)] == self.prompt
        return Call(
            model="drafter" if request.proposing else "main",
            phase="propose" if request.proposing or request.generating else "verify",
            processor=name,
            tokens=tokens[len(self.prompt) :] if continues else tokens,
            continues=continues,
            committed=len(request.committed) if request.committed is not None else len(request.chosen),
        )

    def generator(self, model: Any) -> None:
        """Learn what the candidate generator is given and what it proposes."""
        make, request = model._get_candidate_generator, self.request

        @functools.wraps(make)
        def _get_candidate_generator(*args: Any, **kwargs: Any) -> Any:
            generator = make(*args, **kwargs)
            propose = generator.get_candidates

            @functools.wraps(propose)
            def get_candidates(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
                request.committed = input_ids[0, len(self.prompt) :].tolist()
                request.chosen, request.drafted, request.verdicts = [], [], []
                request.candidate = []
                request.generating = True
                try:
                    result = propose(input_ids, *args, **kwargs)
                finally:
                    request.generating = False
                request.candidate = result[0][0, input_ids.shape[1] :].tolist()
                request.chosen = []
                hash_tensor(request.hashed, result[0])
                return result

            generator.get_candidates = get_candidates
            return generator

        self._set(model, "_get_candidate_generator", _get_candidate_generator)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute, and put back (or remove) what was there."""
        if name in vars(owner):
            self.stack.callback(setattr, owner, name, vars(owner)[name])
        else:
            self.stack.callback(delattr, owner, name)
        setattr(owner, name, value)


def _rows(probabilities: Any, num_samples: int) -> list[Row] | None:
    """The laws that a call of `multinomial` samples from, as it normalises them; None if it would raise."""
    if num_samples != 1:
        raise Unaccounted(f"multinomial was asked for {num_samples} samples of one row")
    matrix = probabilities.detach().to(torch.float64).reshape(-1, probabilities.shape[-1]).numpy()
    rows = [normalised(row) for row in matrix]
    return None if any(row is None for row in rows) else [row for row in rows if row is not None]


def hash_tensor(hashed: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        hashed.update(f"{tuple(value.shape)}".encode())
        hashed.update(value.detach().cpu().contiguous().numpy().tobytes())
    else:
        hashed.update(type(value).__name__.encode())


def hash_state(hashed: Any, processor: Any) -> None:
    """Add what a processor holds: its tensors and plain values, and those of an object it calls `state`."""
    for owner in (processor, getattr(processor, "state", None)):
        for name, value in sorted(getattr(owner, "__dict__", {}).items()):
            if isinstance(value, torch.Tensor):
                hashed.update(name.encode())
                hash_tensor(hashed, value)
            elif value is None or isinstance(value, bool | int | float | str):
                hashed.update(f"{name}={value!r}".encode())
