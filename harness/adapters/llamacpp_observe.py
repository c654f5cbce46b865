"""Observers on one `Llama` object: its evaluations, its drafter and what it yields. None changes anything.

They are attributes of the object, in front of the methods of the same name; `tests/engines` draw with and
without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.adapters.base import Counters


@dataclass(slots=True, kw_only=True)
class Probe:
    """What is known of the request that is running. Cleared before each."""

    tokens: list[int] = field(default_factory=list)
    """What `generate()` has yielded."""

    evaluations: int = 0
    position: int = 0
    """How many tokens had been yielded before the last evaluation."""

    candidate: list[int] = field(default_factory=list)
    """The proposal in the last evaluation."""

    blocks: list[tuple[int, list[int]]] = field(default_factory=list)
    """Position and proposal of every evaluation that had one."""

    proposed: list[int] = field(default_factory=list)
    """What the drafter said since the last evaluation."""

    def clear(self) -> None:
        """Forget the last request."""
        self.tokens, self.candidate, self.blocks, self.proposed = [], [], [], []
        self.evaluations = self.position = 0

    def counters(self) -> Counters:
        """What the request counted. Accepted is what stands, of each proposal, in what was yielded."""
        accepted = 0
        for position, proposal in self.blocks:
            for hoped, token in zip(proposal, self.tokens[position:], strict=False):
                if hoped != token:
                    break
                accepted += 1
        return Counters(
            proposals=sum(len(proposal) for _, proposal in self.blocks),
            verifications=len(self.blocks),
            accepted=accepted,
        )


def observe(engine: Any, probe: Probe) -> Any:
    """Let `engine` report to `probe`; return it."""
    evaluate, propose, generate = engine.eval, engine.draft_model, engine.generate

    def observed_eval(tokens: Sequence[int]) -> Any:
        probe.evaluations += 1
        probe.position = len(probe.tokens)
        # The engine evaluates the token before a proposal with it, and cuts the proposal at its context.
        probe.candidate = [int(token) for token in tokens[1 : 1 + len(probe.proposed)]]
        probe.proposed = []
        if probe.candidate:
            probe.blocks.append((probe.position, probe.candidate))
        return evaluate(tokens)

    def observed_draft(input_ids: Any, **kwargs: Any) -> Any:
        result = propose(input_ids, **kwargs)
        probe.proposed = result.tolist()
        return result

    def observed_generate(*args: Any, **kwargs: Any) -> Iterator[int]:
        for token in generate(*args, **kwargs):
            probe.tokens.append(token)
            yield token

    engine.eval, engine.generate = observed_eval, observed_generate
    if propose is not None:
        engine.draft_model = observed_draft
    return engine


@contextmanager
def unobserved(engine: Any, drafter: Any) -> Iterator[None]:
    """Take the observers off `engine` for a while; `drafter` is its own, which stands behind one of them."""
    watched = {name: vars(engine)[name] for name in ("eval", "generate", "draft_model")}
    del engine.eval, engine.generate
    engine.draft_model = drafter
    try:
        yield
    finally:
        vars(engine).update(watched)
