"""Observers inside Transformers' `generate()`. None of them changes what it observes.

`generate()` looks the decoding loop up on the model's class, so the model is an instance of a subclass made
here. Each override calls the engine's own method and adds to a `Probe`; `tests/engines` draw with and
without them.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import StoppingCriteriaList

from harness.adapters.base import Counters

MODEL_ARGUMENTS = frozenset({"attention_mask"})
"""Arguments of `generate()` that are the model's, not settings: its preparation passes them through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What `generate()` had prepared when it was about to sample: the engine's own parts."""

    input_ids: Any
    """Prompt, once a row: (rows, prompt length)."""

    processors: Any
    """A LogitsProcessorList no call has gone through yet."""

    criteria: Any
    """The StoppingCriteriaList of the speculation-off loop."""


@dataclass(slots=True, kw_only=True)
class Probe:
    """Where the observers of one model write. Cleared before each request."""

    capture: bool = False
    """Hand back `Prepared` instead of sampling."""

    ends: Any = None
    """(rows,) length, prompt included, at which each row of the sampling loop finished."""

    proposals: int = 0
    verifications: int = 0
    accepted: int = 0

    prepared: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Configuration objects by id, each with the result of the engine's own preparation of it."""

    proposed: list[int] = field(default_factory=list)
    """Token ids of the proposal under verification."""

    committed: int = 0
    """Length of the sequence that it was proposed after."""

    def clear(self) -> None:
        """Forget the last request (but not the prepared configurations)."""
        self.ends = None
        self.proposals = self.verifications = self.accepted = 0
        self.proposed = []

    def counters(self) -> Counters:
        """What the request counted so far."""
        return Counters(proposals=self.proposals, verifications=self.verifications, accepted=self.accepted)


def observed(base: type[Any], probe: Probe) -> type[Any]:
    """A subclass of the model class `base` whose instances report to `probe`."""

    @functools.wraps(base._sample)
    def _sample(
        self: Any, input_ids: Any, logits_processor: Any, stopping_criteria: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if probe.capture:
            return Prepared(input_ids=input_ids, processors=logits_processor, criteria=stopping_criteria)
        watched = _watch(stopping_criteria, probe)
        return base._sample(self, input_ids, logits_processor, watched, *args, **kwargs)

    @functools.wraps(base._get_candidate_generator)
    def _get_candidate_generator(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _count(base._get_candidate_generator(self, *args, **kwargs), probe)

    @functools.wraps(base._prepare_generation_config)
    def _prepare_generation_config(self: Any, generation_config: Any, **kwargs: Any) -> Any:
        # A quarter of a request's time goes into merging the same defaults into the same configuration. The
        # engine does that once for each object; later calls get a copy of its result, because `generate()`
        # goes on to set attributes on what it is given. It only replaces attributes, so a shallow copy is
        # enough.
        if generation_config is None or not kwargs.keys() <= MODEL_ARGUMENTS:
            return base._prepare_generation_config(self, generation_config, **kwargs)
        known = probe.prepared.get(id(generation_config))
        if known is None:
            # The key object is kept too, so that its id cannot come to mean another.
            result, _ = base._prepare_generation_config(self, generation_config, **kwargs)
            known = probe.prepared[id(generation_config)] = (generation_config, result)
        return copy.copy(known[1]), kwargs

    members = {
        "_sample": _sample,
        "_get_candidate_generator": _get_candidate_generator,
        "_prepare_generation_config": _prepare_generation_config,
        "__module__": base.__module__,
    }
    # The engine compares class names in places, so the subclass keeps its parent's.
    return type(base.__name__, (base,), members)


def _watch(criteria: Any, probe: Probe) -> Any:
    """The same criteria, with a note of when each row first met one."""

    def call(self: Any, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        done = criteria(input_ids, scores, **kwargs)
        if probe.ends is None:
            probe.ends = torch.zeros(input_ids.shape[0], dtype=torch.long)
        probe.ends[(probe.ends == 0) & done] = input_ids.shape[1]
        return done

    return type("StoppingCriteriaList", (StoppingCriteriaList,), {"__call__": call})(criteria)


def _count(generator: Any, probe: Probe) -> Any:
    """The same candidate generator, with counts of what it proposed and what was kept of that."""
    propose, update = generator.get_candidates, generator.update_candidate_strategy

    def get_candidates(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        result = propose(input_ids, *args, **kwargs)
        probe.committed = input_ids.shape[1]
        probe.proposed = result[0][0, probe.committed :].tolist()
        probe.proposals += len(probe.proposed)
        probe.verifications += bool(probe.proposed)
        return result

    def update_candidate_strategy(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        # The engine's own number of matches leaves out the last token of a proposal that ends the sequence,
        # so the committed tokens are compared instead.
        for proposed, token in zip(probe.proposed, input_ids[0, probe.committed :].tolist(), strict=False):
            if proposed != token:
                break
            probe.accepted += 1
        return update(input_ids, *args, **kwargs)

    # On the instance, not around it: the engine asks for the generator's type and attributes.
    generator.get_candidates = get_candidates
    generator.update_candidate_strategy = update_candidate_strategy
    return generator
