"""llama-cpp-python with its random choices made by a chooser; nothing else of it is changed.

The engine samples the rows of a verified block one after the other and stops at the first mismatch, so each
choice is met as it would be by itself, and as a rule nothing is left to be filled. An engine that samples on
is noticed all the same: its later rows are filled, and the check of that expands them (`llamacpp_hooks`).
"""

from __future__ import annotations

import contextlib
import random
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from harness.adapters.base import Outcome, Prefix
from harness.choices.llamacpp_hooks import Hooks, Request
from harness.choices.llamacpp_state import hash_object
from harness.choices.note import Call, Note
from harness.choices.tree import Chooser, Run, Told
from harness.wire import UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.adapters.llamacpp import Engine, Opened


class _Drawing:
    """A drawing sampler of the engine's own, freed with its owner."""

    def __init__(self) -> None:
        self.sampler = llama_cpp.llama_sampler_init_dist(0)
        weakref.finalize(self, llama_cpp.llama_sampler_free, self.sampler)


@dataclass(slots=True, kw_only=True)
class LlamaCppProgram:
    """One arm of an open configuration; see `harness.choices.tree.Program`."""

    opened: Opened
    speculation: bool
    trace: list[Call] | None = None
    """Where to write down what each processor was shown, if at all."""

    stops: list[Call] | None = None
    """The same of the stopping criteria."""

    yielded: Prefix = ()
    """What the engine's loop handed out in the last run; `create_completion()` returns less than that."""

    random_state_changed: int = 0
    """Runs after which a global generator stood elsewhere than before: randomness past the chooser."""

    _dist: _Drawing = field(default_factory=_Drawing)

    def __post_init__(self) -> None:
        """Raises `JobError` (unsupported) for samplers that draw by themselves."""
        if self.opened.features.value("mirostat_mode", 0) != 0:
            raise JobError(UNSUPPORTED, "Mirostat draws inside its own sampler, which cannot be steered")

    @property
    def prompt(self) -> tuple[int, ...]:
        """Tokens of the prompt."""
        return self.opened.prompt

    def run(self, chooser: Chooser) -> Run:
        """Make one request, with `chooser` for every random choice."""
        request = Request(chooser=chooser, trace=self.trace, stops=self.stops)
        before = _random_states()
        outcome = self._watched(request, seed=0)
        if _random_states() != before:
            self.random_state_changed += 1
        return Run(
            outcome=outcome,
            counters=asdict(self._engine().probe.counters()),
            digest=request.hashed.hexdigest(),
            siblings=self._siblings(chooser, outcome),
        )

    def seeded(self, seed: int, wrapped: bool) -> dict[str, Any]:
        """One request from a seed, with or without wrappers, and everything that one can tell of it.

        Where the engine's generator then stands cannot be seen: it is inside the sampler.
        """
        engine, features = self._engine(), self.opened.features
        if wrapped:
            outcome = self._watched(Request(chooser=None), seed)
        else:
            outcome = self._called(engine, seed, features.fresh(), features.criteria())
        return {
            "outcome": outcome,
            "model_calls": engine.probe.evaluations,
            "counters": asdict(engine.probe.counters()),
            "buffer": engine.llama.input_ids[: engine.llama.n_tokens].tolist(),
        }

    def _engine(self) -> Engine:
        return self.opened.engine(self.speculation)

    def _called(self, engine: Engine, seed: int, processors: list[Any], criteria: list[Any]) -> Outcome:
        try:
            return self.opened.request(engine, seed, processors, criteria).outcome
        except (MemoryError, JobError):
            raise
        except Exception as error:  # whatever the engine raises is what its caller gets to see
            return {"crash": type(error).__name__}
        finally:
            self.yielded = tuple(engine.probe.tokens)

    def _watched(self, request: Request, seed: int) -> Outcome:
        engine, features = self._engine(), self.opened.features
        processors, criteria = features.fresh(), features.criteria()
        with contextlib.ExitStack() as stack:
            hooks = Hooks(
                request=request,
                probe=engine.probe,
                prompt=self.opened.prompt,
                size=len(self.opened.vocab),
                dist=self._dist.sampler,
                stack=stack,
            )
            hooks.samplers()
            outcome = self._called(engine, seed, hooks.processors(processors), hooks.criteria(criteria))
            # While the chain's end still stands: closing the chain looks at it.
            engine.llama._sampler = None
        for part in (*processors, *criteria):
            hash_object(request.hashed, part)
        held = engine.llama.input_ids[: engine.llama.n_tokens]
        request.hashed.update(held.tobytes() + repr((self.yielded, sorted(outcome.items()))).encode())
        return outcome

    def _siblings(self, chooser: Chooser, outcome: Outcome) -> Mapping[int, Mapping[str, Any]]:
        """Outcomes of the other tokens at the last choice, where that was made at the horizon's last place.

        There the request ends whatever is chosen, except that where the proposed token would be met the
        engine may go on, so that token is never closed. A stopping criterion is asked about the engine's
        buffer in the end, so nothing is told where there is one.
        """
        opened = self.opened
        if not chooser.points or "tokens" not in outcome or opened.features.stopping:
            return {}
        last = chooser.points[-1]
        note: Note = last.note
        if last.taken == note.candidate or len(note.prefix) != opened.horizon - 1:
            return {}
        if self.yielded != (*note.prefix, last.taken) or opened.returned(self.yielded) != outcome:
            return {}
        if any(opened.returned(note.prefix[:length]) for length in range(1, opened.horizon)):
            return {}  # it went on past a stop: what follows is not to be told
        others = [index for index in last.row.nonzero()[0].tolist() if index != note.candidate]
        return Told(others, lambda index: opened.returned((*note.prefix, index)) or {})


def _random_states() -> tuple[Any, ...]:
    """Where the global generators of numpy and Python stand."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)
    inner = numpy["state"]
    return inner["key"].tobytes(), inner["pos"], random.getstate()
