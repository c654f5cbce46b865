"""Transformers: sampling off and with prompt lookup on, through `generate()` itself.

Return map: the outcome's tokens are everything that `generate()` returned after the prompt, never cut at an
end token, so that overshoot stays visible; of a batch, each row up to the length at which the engine's own
stopping criteria ended it (the rest is padding). This engine reports no finish reason, so `finish` is a
function of the tokens: `eos` if the last one is the end token; else `stop` if prompt and tokens, as text,
end with a stop string; else `length` if there are at least `horizon`; else `other`.

Records of kind `scores` are what `generate()` returned as `scores`: a tuple with one float32 tensor (rows, V)
for each step, the processed scores before the softmax. The sampling loop appends one a step, the assisted
loop one for each token that it commits in a round (`GenerationMixin._sample` and `_assisted_decoding`). Each
tensor's row is one entry with all V tokens; of a batch, a row has those of its steps up to its end.
"""

from __future__ import annotations

import os

# Nothing here may look for a network, whatever the collector cut off.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from transformers.utils import logging

from harness.adapters import hf_features, hf_model, records
from harness.adapters.base import Arm, Counters, Draw, Entry, Kernel, Outcome, Prefix, Trace, crash
from harness.adapters.custom import located
from harness.adapters.hf_intercept import Probe
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.choices.hf import HfProgram

MAX_OUTCOMES = 100_000
"""Outcomes remembered; a larger model returns ever new ones."""


@dataclass(slots=True, kw_only=True)
class Opened:
    """One configuration, ready to draw."""

    model: Any
    tokenizer: Any
    probe: Probe
    horizon: int
    prompt: tuple[int, ...]
    ends: tuple[int, ...]
    """End tokens."""
    features: Mapping[str, Any]
    drafter: Mapping[str, Any] | None
    own: hf_features.Own
    """A user's own processors and stopping criteria."""

    assistant: Any = None
    """The draft model, if the drafter is one."""

    rows: records.Rows | None = None
    """Makes the entries of records, if the configuration asks for any."""

    configs: dict[tuple[bool, int], Any] = field(default_factory=dict)
    """GenerationConfig by (with the drafter, rows); one object each, so that it is prepared once."""

    outcomes: dict[Prefix, Outcome] = field(default_factory=dict)
    """The return map, remembered: tiny models return few different sequences."""

    def config(self, drafter: bool, rows: int) -> Any:
        """The engine's configuration of such requests; `JobError` if it refuses the features."""
        known = self.configs.get((drafter, rows))
        if known is None:
            known = self.configs[drafter, rows] = hf_features.generation_config(
                self.features, self.horizon, self.ends, rows, self.drafter if drafter else None
            )
        return known

    def call(self, config: Any, speculation: bool = False, own: Mapping[str, Any] | None = None) -> Any:
        """Call the engine once; what it returned. `own` replaces fresh instances of a user's classes."""
        ids = torch.tensor([self.prompt], dtype=torch.long)
        drafter = {"assistant_model": self.assistant} if speculation and self.assistant is not None else {}
        return self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=config,
            tokenizer=self.tokenizer,
            **(self.own.arguments() if own is None else own),
            **drafter,
        )

    def generate(self, config: Any, speculation: bool = False) -> Any:
        """Call the engine once: token ids of (rows, length), prompt included.

        A user's own classes are made anew for it; `JobError` if that fails.
        """
        return sequences(self.call(config, speculation))

    def record(self, returned: Any, row: int, steps: int | None) -> list[Entry] | None:
        """The record of one row of what the engine returned; only its first `steps` steps if given."""
        if self.rows is None:
            return None
        return self.rows.entries([scores[row].numpy() for scores in returned.scores[:steps]])

    def outcome(self, tokens: Prefix) -> Outcome:
        """The return map (see the module)."""
        known = self.outcomes.get(tokens)
        if known is None:
            known = {"tokens": list(tokens), "finish": self._finish(tokens)}
            if len(self.outcomes) < MAX_OUTCOMES:
                self.outcomes[tokens] = known
        return known

    def _finish(self, tokens: Prefix) -> str:
        if tokens and tokens[-1] in self.ends:
            return "eos"
        stops = self.features.get("stop_strings") or []
        if stops:  # a tokenizer is slow, and a large vocabulary has many outcomes
            text = self.tokenizer.decode([*self.prompt, *tokens])
            if any(text.endswith(stop) for stop in ([stops] if isinstance(stops, str) else stops)):
                return "stop"
        return "length" if len(tokens) >= self.horizon else "other"


def sequences(returned: Any) -> Any:
    """The tokens in what the engine returned: with records asked for they are one part of it."""
    return getattr(returned, "sequences", returned)


class HfAdapter:
    """The adapter for Transformers; see `harness.adapters.base.Adapter`."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened: Opened | None = None
        # One thread and deterministic kernels: the same seed must give the same draw in any process.
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        logging.set_verbosity_error()

    def open(
        self,
        configuration: Mapping[str, Any],
        model: Mapping[str, Any] | None,
        prompt: Sequence[int] | None,
        cwd: str | None,
    ) -> str | None:
        """Build the model, and check the features as far as the engine's `GenerationConfig` does.

        What the engine finds wrong later, it finds in every request: that is a crash outcome.
        """
        self._opened = None
        if model is None or not prompt:
            raise JobError(BAD_REQUEST, "this adapter needs a model and a nonempty prompt")
        horizon = configuration.get("horizon")
        if not isinstance(horizon, int) or isinstance(horizon, bool) or horizon < 1:
            raise JobError(BAD_REQUEST, "configuration.horizon is not a positive integer")
        features = located(configuration.get("features") or {}, cwd)
        recorded = records.wanted(
            configuration, "scores", features.get("output_scores") is True, "output_scores"
        )
        drafter = configuration.get("drafter")
        if drafter is not None:
            hf_features.check_drafter(drafter)
        if drafter is not None and drafter["kind"] == "assistant":
            hf_model.check_assistant(drafter["model"], model)
        probe = Probe()
        loaded = hf_model.load(model, probe)
        if not all(0 <= token < loaded.size for token in prompt):
            raise JobError(BAD_REQUEST, "the prompt has a token outside the vocabulary")
        if len(prompt) + horizon > loaded.context:
            raise JobError(BAD_REQUEST, "prompt and horizon are longer than the model's context")
        opened = Opened(
            model=loaded.model,
            tokenizer=loaded.tokenizer,
            probe=probe,
            horizon=horizon,
            prompt=tuple(prompt),
            ends=loaded.ends,
            features=features,
            drafter=drafter,
            own=hf_features.own_classes(features, loaded.tokenizer, loaded.size, loaded.ends),
            assistant=None if drafter is None else hf_model.assistant(drafter),
            rows=records.Rows() if recorded else None,
        )
        opened.config(False, 1)
        self._opened = opened
        return loaded.digest

    def tokenize(self, model: Mapping[str, Any], text: str) -> list[int]:
        """The token ids of a text, by the model's own tokenizer; nothing is added to it."""
        try:
            return [int(i) for i in hf_model.tokenizer_of(model).encode(text, add_special_tokens=False)]
        except JobError:
            raise
        except Exception as error:
            raise JobError(BAD_REQUEST, f"the text cannot be tokenized: {error}") from error

    def spell(self, tokens: Sequence[int]) -> list[str]:
        """Each of these tokens as text."""
        return [self._configuration().tokenizer.decode([token]) for token in tokens]

    def vocabulary(self) -> dict[str, Any]:
        """`size` of the open model's vocabulary, and its `ends`."""
        opened = self._configuration()
        return {"size": opened.model.config.get_text_config().vocab_size, "ends": list(opened.ends)}

    def draws(self, arm: Arm, seed: str, rows: int) -> list[Draw]:
        """One call of `generate()` from `torch.manual_seed(seed)`: `rows` rows off, exactly one row on."""
        opened = self._arm(arm)
        if arm.speculation and rows != 1:
            raise JobError(UNSUPPORTED, "assisted decoding in this engine takes one row a request")
        config = opened.config(arm.speculation, rows)
        opened.probe.clear()
        torch.manual_seed(int(seed))
        try:
            returned = opened.call(config, arm.speculation)
        except (MemoryError, JobError):
            raise
        except Exception as error:  # whatever the engine raises is what its caller gets to see
            return crash(error, rows, opened.probe.counters(), opened.rows is not None)
        start, found = len(opened.prompt), sequences(returned).tolist()
        if arm.speculation:
            (sequence,) = found
            outcome, record = opened.outcome(tuple(sequence[start:])), opened.record(returned, 0, None)
            return [Draw(outcome=outcome, counters=opened.probe.counters(), record=record)]
        return [
            Draw(
                outcome=opened.outcome(tuple(sequence[start:end])),
                counters=Counters(),
                record=opened.record(returned, row, end - start),
            )
            for row, (sequence, end) in enumerate(zip(found, opened.probe.ends.tolist(), strict=True))
        ]

    def trace(self, arm: Arm, seed: str, observed: bool) -> Trace:
        """One request of one row with the observers or without (`harness.adapters.hf_trace`)."""
        from harness.adapters.hf_trace import trace

        return trace(self._arm(arm), arm.speculation, seed, observed)

    def kernel(self) -> Kernel:
        """The sequential kernel of the open configuration (`harness.adapters.hf_kernel`)."""
        from harness.adapters.hf_kernel import HfKernel

        return HfKernel(self._configuration())

    def program(self, arm: Arm) -> HfProgram:
        """One arm with its random choices to be made by a chooser (`harness.choices.hf`)."""
        from harness.choices.hf import HfProgram

        return HfProgram(opened=self._arm(arm), speculation=arm.speculation)

    def _arm(self, arm: Arm) -> Opened:
        opened = self._configuration()
        if arm.speculation and opened.drafter is None:
            raise JobError(BAD_REQUEST, f"arm {arm.id!r} speculates, but the configuration has no drafter")
        return opened

    def _configuration(self) -> Opened:
        if self._opened is None:
            raise JobError(BAD_REQUEST, "no configuration is open")
        return self._opened
