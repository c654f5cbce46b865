"""Transformers with its random choices made by a chooser; nothing else of it is changed.

While `generate()` runs, and on its thread only, two functions of torch are replaced: `multinomial`, which
every sampler of the engine calls with the probabilities it samples from, and `rand_like`, which speculative
sampling with a draft model calls for its acceptance draws. The uniforms handed out by the latter have no
value: each comparison of one with a number *is* the choice, with the chance that a uniform is below that
number (`harness.choices.hf_uniform`). So nothing is presumed about what the engine compares with what.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.adapters.base import Outcome
from harness.choices.hf_hooks import Hooks, Request, hash_state
from harness.choices.hf_state import hash_whole
from harness.choices.note import Call, Note
from harness.choices.tree import Chooser, Run, Told
from harness.wire import JobError

if TYPE_CHECKING:
    from harness.adapters.hf import Opened


@dataclass(slots=True, kw_only=True)
class HfProgram:
    """One arm of an open configuration; see `harness.choices.tree.Program`."""

    opened: Opened
    speculation: bool
    trace: list[Call] | None = None
    """Where to write down what each processor was shown, if at all."""

    stops: list[Call] | None = None
    """The same of the stopping criteria."""

    random_state_changed: int = 0
    """Runs after which a global generator stood elsewhere than before: randomness past the chooser."""

    @property
    def prompt(self) -> tuple[int, ...]:
        """Tokens of the prompt."""
        return self.opened.prompt

    def run(self, chooser: Chooser) -> Run:
        """Make one request, with `chooser` for every random choice."""
        request = Request(chooser=chooser, trace=self.trace, stops=self.stops)
        before = _random_states()
        outcome = self._request(request)
        if _random_states() != before:
            self.random_state_changed += 1
        return Run(
            outcome=outcome,
            counters=asdict(self.opened.probe.counters()),
            digest=request.hashed.hexdigest(),
            siblings=self._siblings(chooser, outcome),
        )

    def seeded(self, seed: int, wrapped: bool) -> dict[str, Any]:
        """One request from a seed, with or without wrappers, and everything that one can tell of it."""
        torch.manual_seed(seed)
        request = Request(chooser=None)
        outcome, calls = self.forwards((lambda: self._request(request)) if wrapped else self._generate)
        return {
            "outcome": outcome,
            "model_calls": calls,
            "counters": asdict(self.opened.probe.counters()),
            "next_random": torch.rand(1).item(),
        }

    def _generate(self) -> Outcome:
        opened = self.opened
        config = opened.config(self.speculation, 1)
        opened.probe.clear()
        try:
            (sequence,) = opened.generate(config, self.speculation).tolist()
        except (MemoryError, JobError):
            raise
        except Exception as error:  # whatever the engine raises is what its caller gets to see
            return {"crash": type(error).__name__}
        start = len(opened.prompt)
        return opened.outcome(tuple(sequence[start:]))

    def _request(self, request: Request) -> Outcome:
        with self._replaced(request):
            outcome = self._generate()
        own = self.opened.own
        kinds = {custom.kind for custom in (*own.processors, *own.stopping)}
        for part in (*request.processors, *request.criteria):
            # The engine's own may hold a model; they keep what changes where `hash_state` finds it.
            (hash_whole if type(part) in kinds else hash_state)(request.hashed, part)
        request.hashed.update(repr(sorted(outcome.items())).encode())
        return outcome

    @contextlib.contextmanager
    def _replaced(self, request: Request) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            hooks = Hooks(request=request, prompt=self.opened.prompt, stack=stack)
            hooks.torch()
            hooks.model(self.opened.model, "main")
            hooks.criteria(self.opened.model)
            hooks.generator(self.opened.model)
            if self.speculation and self.opened.assistant is not None:
                hooks.model(self.opened.assistant, "drafter")
            yield

    def _siblings(self, chooser: Chooser, outcome: Outcome) -> Mapping[int, Mapping[str, Any]]:
        """Outcomes of the other tokens at the last choice, where it was made at the horizon or beyond.

        At the horizon's last place the request ends whatever is chosen, except where the proposed token
        would be met: what follows then is the engine's affair, so that token is never closed. A row beyond
        the horizon that did not reach the caller is read by nobody, but meeting its token is not closed
        either, since another choice may follow.
        """
        if not chooser.points or "tokens" not in outcome:
            return {}
        last, horizon = chooser.points[-1], self.opened.horizon
        note: Note = last.note
        tokens, length = tuple(outcome["tokens"]), len(note.prefix)
        if last.kind not in ("token", "residual", "bonus") or last.taken == note.candidate:
            return {}
        others = [index for index in last.row.nonzero()[0].tolist() if index != note.candidate]
        if length >= horizon and tokens == note.prefix[:horizon]:
            return dict.fromkeys(others, outcome)
        if length == horizon - 1 and tokens == (*note.prefix, last.taken):
            return Told(others, lambda index: self.opened.outcome((*note.prefix, index)))
        return {}

    def forwards(self, call: Callable[[], Outcome]) -> tuple[Outcome, list[int]]:
        """Call `call`; return its outcome and how often each of the arm's models was called meanwhile."""
        models = [self.opened.model]
        if self.speculation and self.opened.assistant is not None:
            models.append(self.opened.assistant)
        counts = [0] * len(models)

        def counter(at: int) -> Callable[..., None]:
            def count(*_: Any) -> None:
                counts[at] += 1

            return count

        handles = [model.register_forward_pre_hook(counter(at)) for at, model in enumerate(models)]
        try:
            outcome = call()
        finally:
            for handle in handles:
                handle.remove()
        return outcome, counts


def _random_states() -> tuple[Any, ...]:
    """Where the global generators of torch, numpy and Python stand."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)
    inner = numpy["state"]
    return (
        torch.get_rng_state().numpy().tobytes(),
        inner["key"].tobytes(),
        inner["pos"],
        random.getstate(),
    )
