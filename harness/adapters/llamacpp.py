"""llama-cpp-python: sampling off and with prompt lookup on, through `generate()` or `create_completion()`.

Return map. `generate()` yields tokens for as long as its caller asks; the caller here asks until it has seen
an end token or `horizon` tokens, and asks no more. The outcome's tokens are all that was yielded, the end
token included, and `finish` is null: this method reports none.
`create_completion()` returns text. Its tokens are that text's, which therefore must be made of tokens of one
ASCII character each (a trained checkpoint's are not); the end token is not in it, nor anything from a stop
string on. `finish` is what it reports.

Records of kind `logprobs` are what `create_completion()` returned as `logprobs`: of its `top_logprobs`, one
dictionary from text to log-probability for each token of the completion (those of a stop string included,
the end token not; an end token's text is empty). The values are float32 numbers, computed by the engine from
the model's logits at the end.

Seeds. The engine takes 32 bits, so it gets the low 32 of the draw's seed. All ones means "any seed" to it; a
draw with such a seed is made with the one before.

Each request starts with nothing in the cache: `reset()` is the engine's own way to say so. Else what it
computes would depend, in the last bits, on the request before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

from harness.adapters import llamacpp_features, llamacpp_load, records
from harness.adapters.base import Arm, Counters, Draw, Entry, Kernel, Outcome, Prefix, Trace, crash
from harness.adapters.custom import located
from harness.adapters.llamacpp_features import COMPLETION, GENERATE, Features
from harness.adapters.llamacpp_observe import Probe, observe
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

if TYPE_CHECKING:
    from harness.choices.llamacpp import LlamaCppProgram

SEED_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One `Llama` object and what is observed of it."""

    llama: Any
    probe: Probe
    drafter: Any
    """The engine's drafter without its observer, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one request came to."""

    outcome: Outcome
    record: list[Entry] | None


@dataclass(slots=True, kw_only=True)
class Opened:
    """One configuration, ready to draw."""

    off: Engine
    on: Engine | None
    features: Features
    horizon: int
    prompt: tuple[int, ...]
    vocab: tuple[str, ...]
    """Each token's text."""

    eos: int
    """The end token that processors are told of."""

    ends: frozenset[int]
    """All end tokens."""

    letters: Mapping[str, int] = field(default_factory=dict)
    """Tokens by their text."""

    drafter: Mapping[str, Any] | None = None
    """As the configuration has it."""

    texts: Mapping[str, int] | None = None
    """Tokens by the text that the engine gives of each, if the configuration asks for records."""

    def engine(self, speculation: bool) -> Engine:
        """The engine of an arm."""
        if not speculation:
            return self.off
        assert self.on is not None
        return self.on

    def request(
        self, engine: Engine, seed: int, processors: Sequence[Any], criteria: Sequence[Any]
    ) -> Answer:
        """One request; whatever the engine raises comes through."""
        llama, features = engine.llama, self.features
        engine.probe.clear()
        llama.reset()
        arguments = dict(features.arguments)
        if processors:
            arguments["logits_processor"] = llama_cpp.LogitsProcessorList(processors)
        if criteria:
            arguments["stopping_criteria"] = llama_cpp.StoppingCriteriaList(criteria)
        if features.api == GENERATE:
            llama.set_seed(seed)
            tokens: list[int] = []
            for token in llama.generate(list(self.prompt), **arguments):
                tokens.append(token)
                if token in self.ends or len(tokens) >= self.horizon:
                    break
            return Answer(outcome={"tokens": tokens, "finish": None}, record=None)
        reply = llama.create_completion(list(self.prompt), max_tokens=self.horizon, seed=seed, **arguments)
        (choice,) = reply["choices"]
        outcome = self.completion(choice["text"], choice["finish_reason"])
        return Answer(outcome=outcome, record=self._record(choice["logprobs"]))

    def _record(self, returned: Mapping[str, Any] | None) -> list[Entry] | None:
        """The record in what `create_completion()` returned as `logprobs`."""
        if self.texts is None or returned is None:
            return None
        return [
            records.entry({self.texts[text]: value for text, value in position.items()})
            for position in returned["top_logprobs"]
        ]

    def completion(self, text: str, finish: str) -> Outcome:
        """The outcome of `create_completion()`."""
        return {"tokens": [self.letters[letter] for letter in text], "finish": finish}

    def returned(self, drawn: Prefix) -> Outcome | None:
        """What a request without stopping criteria that has drawn these tokens returns; None if it goes on.

        For `create_completion()` this is the engine's rule (`harness.adapters.llamacpp_mirror`), else the
        rule of its caller here.
        """
        if self.features.api == GENERATE:
            over = drawn[-1] in self.ends or len(drawn) >= self.horizon
            return {"tokens": list(drawn), "finish": None} if over else None
        if drawn[-1] in self.ends:
            return {"tokens": list(drawn[:-1]), "finish": "stop"}
        text = "".join(self.vocab[token] for token in drawn)
        found = [stop for stop in self.features.value("stop") or [] if stop in text]
        if found:
            return self.completion(text[: text.index(found[0])], "stop")
        return self.completion(text, "length") if len(drawn) >= self.horizon else None


class LlamaCppAdapter:
    """The adapter for llama-cpp-python; see `harness.adapters.base.Adapter`."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened: Opened | None = None

    def open(
        self,
        configuration: Mapping[str, Any],
        model: Mapping[str, Any] | None,
        prompt: Sequence[int] | None,
        cwd: str | None,
    ) -> str | None:
        """Write or find the model, and open the engine on it: once without a drafter, and once with it."""
        self._opened = None
        if model is None or not prompt:
            raise JobError(BAD_REQUEST, "this adapter needs a model and a nonempty prompt")
        horizon = configuration.get("horizon")
        if not isinstance(horizon, int) or isinstance(horizon, bool) or horizon < 1:
            raise JobError(BAD_REQUEST, "configuration.horizon is not a positive integer")
        drafter = configuration.get("drafter")
        if drafter is not None:
            llamacpp_features.check_drafter(drafter)
        described = llamacpp_load.describe(model)
        given = located(configuration.get("features") or {}, cwd)
        features = llamacpp_features.read(given, described.eos)
        told = features.api == COMPLETION and features.value("logprobs") is not None
        recorded = records.wanted(configuration, "logprobs", told, f"{COMPLETION}() and logprobs")
        letters = {text: token for token, text in enumerate(described.vocab) if token not in described.ends}
        if features.api != GENERATE and not all(len(text) == 1 and text.isascii() for text in letters):
            raise JobError(UNSUPPORTED, "create_completion() returns text: each token must be one letter")
        if not all(0 <= token < len(described.vocab) for token in prompt):
            raise JobError(BAD_REQUEST, "the prompt has a token outside the vocabulary")
        drafters: list[Any] = [None]
        if drafter is not None:
            drafters.append(
                LlamaPromptLookupDecoding(
                    max_ngram_size=drafter["max_ngram"], num_pred_tokens=drafter["max_tokens"]
                )
            )
        # One place more than the last token needs: create_completion() never fills the context.
        places = len(prompt) + horizon + 1
        llamas, digest = described.load(places, tuple(drafters), features.value("logprobs") is not None)
        llamacpp_features.check_grammar(features, llamas[0])
        engines = [_engine(llama) for llama in llamas]
        self._opened = Opened(
            off=engines[0],
            on=engines[1] if drafter is not None else None,
            features=features,
            horizon=horizon,
            prompt=tuple(prompt),
            vocab=described.vocab,
            eos=described.eos,
            ends=described.ends,
            letters=letters,
            drafter=drafter,
            texts=_texts(llamas[0], len(described.vocab)) if recorded else None,
        )
        return digest

    def tokenize(self, model: Mapping[str, Any], text: str) -> list[int]:
        """The token ids of a text, by a checkpoint's own tokenizer; nothing is added to it."""
        return llamacpp_load.tokenize(model, text)

    def spell(self, tokens: Sequence[int]) -> list[str]:
        """Each of these tokens as text."""
        return [self._configuration().vocab[token] for token in tokens]

    def vocabulary(self) -> dict[str, Any]:
        """`size` of the open model's vocabulary, and its `ends`."""
        opened = self._configuration()
        return {"size": len(opened.vocab), "ends": sorted(opened.ends)}

    def repeatability(self) -> dict[str, float]:
        """See `harness.adapters.llamacpp_repeat`."""
        from harness.adapters.llamacpp_repeat import repeatability

        return repeatability(self._configuration())

    def draws(self, arm: Arm, seed: str, rows: int) -> list[Draw]:
        """One request from the low 32 bits of the seed. One row only: the engine has no batches."""
        opened = self._arm(arm)
        if rows != 1:
            raise JobError(UNSUPPORTED, "this engine takes one row a request")
        engine = opened.engine(arm.speculation)
        try:
            answer = opened.request(
                engine, low_bits(int(seed)), opened.features.fresh(), opened.features.criteria()
            )
        except (MemoryError, JobError):
            raise
        except Exception as error:  # whatever the engine raises is what its caller gets to see
            return crash(error, rows, engine.probe.counters(), opened.texts is not None)
        counters = engine.probe.counters() if arm.speculation else Counters()
        return [Draw(outcome=answer.outcome, counters=counters, record=answer.record)]

    def trace(self, arm: Arm, seed: str, observed: bool) -> Trace:
        """One request with the observers or without (`harness.adapters.llamacpp_trace`)."""
        from harness.adapters.llamacpp_trace import trace

        return trace(self._arm(arm), arm.speculation, low_bits(int(seed)), observed)

    def kernel(self) -> Kernel:
        """The sequential kernel of the open configuration (`harness.adapters.llamacpp_kernel`)."""
        from harness.adapters.llamacpp_kernel import LlamaCppKernel

        return LlamaCppKernel(self._configuration())

    def program(self, arm: Arm) -> LlamaCppProgram:
        """One arm with its random choices to be made by a chooser (`harness.choices.llamacpp`)."""
        from harness.choices.llamacpp import LlamaCppProgram

        return LlamaCppProgram(opened=self._arm(arm), speculation=arm.speculation)

    def _arm(self, arm: Arm) -> Opened:
        opened = self._configuration()
        if arm.speculation and opened.on is None:
            raise JobError(BAD_REQUEST, f"arm {arm.id!r} speculates, but the configuration has no drafter")
        return opened

    def _configuration(self) -> Opened:
        if self._opened is None:
            raise JobError(BAD_REQUEST, "no configuration is open")
        return self._opened


def _engine(llama: Any) -> Engine:
    probe, drafter = Probe(), llama.draft_model
    return Engine(llama=observe(llama, probe), probe=probe, drafter=drafter)


def _texts(llama: Any, size: int) -> Mapping[str, int]:
    """Tokens by the text that the engine gives of each; `JobError` if two have the same."""
    texts = {llama.detokenize([token]).decode("utf-8", "ignore"): token for token in range(size)}
    if len(texts) != size:
        raise JobError(
            UNSUPPORTED, "records: this engine names tokens by their text, which two of them share"
        )
    return texts


def low_bits(seed: int) -> int:
    """What the engine is given for a 64-bit seed (see the module)."""
    return min(seed & SEED_BITS, SEED_BITS - 1)
