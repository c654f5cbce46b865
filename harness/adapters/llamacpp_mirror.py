"""Which lines of llama-cpp-python the oracle repeats, so that an engine that changed them is noticed.

The oracle puts the sampler chain together itself, from the engine's own samplers but not by the engine's own
hand: a fault there must not be in both. It follows these lines of `llama_cpp/llama.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import llama_cpp

from harness.wire import UNSUPPORTED, JobError

FILE = "llama_cpp/llama.py"

LINES: Sequence[tuple[str, Mapping[str, int]]] = (
    ("for logit_processor in logits_processor:", {"0.3.19": 715, "0.3.35": 741, "0.3.36": 741}),
    (
        "recarray.logit[:] = logit_processor(self._input_ids, recarray.logit)",
        {"0.3.19": 716, "0.3.35": 742, "0.3.36": 742},
    ),
    ("sampler.add_custom(apply_func)", {"0.3.19": 718, "0.3.35": 744, "0.3.36": 744}),
    ("sampler.add_penalties(", {"0.3.19": 720, "0.3.35": 746, "0.3.36": 746}),
    ("n_vocab=self._n_vocab,", {"0.3.35": 747, "0.3.36": 747}),
    ("penalty_last_n=self.last_n_tokens_size,", {"0.3.19": 724, "0.3.35": 750, "0.3.36": 750}),
    ("penalty_repeat=repeat_penalty,", {"0.3.19": 725, "0.3.35": 751, "0.3.36": 751}),
    ("penalty_freq=frequency_penalty,", {"0.3.19": 726, "0.3.35": 752, "0.3.36": 752}),
    ("penalty_present=presence_penalty,", {"0.3.19": 727, "0.3.35": 753, "0.3.36": 753}),
    ("sampler.add_grammar(self._model, grammar)", {"0.3.19": 733, "0.3.35": 759, "0.3.36": 759}),
    ("if temp < 0.0:", {"0.3.19": 735, "0.3.35": 761, "0.3.36": 761}),
    ("sampler.add_dist(self._seed)", {"0.3.19": 736, "0.3.35": 762, "0.3.36": 762}),
    ("elif temp == 0.0:", {"0.3.19": 737, "0.3.35": 763, "0.3.36": 763}),
    ("sampler.add_top_k(top_k)", {"0.3.19": 758, "0.3.35": 784, "0.3.36": 784}),
    ("sampler.add_typical(typical_p, min_keep)", {"0.3.19": 759, "0.3.35": 785, "0.3.36": 785}),
    ("sampler.add_top_p(top_p, min_keep)", {"0.3.19": 760, "0.3.35": 786, "0.3.36": 786}),
    ("sampler.add_min_p(min_p, min_keep)", {"0.3.19": 761, "0.3.35": 787, "0.3.36": 787}),
    ("sampler.add_temp(temp)", {"0.3.19": 762, "0.3.35": 788, "0.3.36": 788}),
    ("sampler.add_dist(self._seed)", {"0.3.19": 763, "0.3.35": 789, "0.3.36": 789}),
    (
        "if stopping_criteria is not None and stopping_criteria(",
        {"0.3.19": 949, "0.3.35": 999, "0.3.36": 999},
    ),
    ("self._input_ids[:sample_idx],", {"0.3.19": 950, "0.3.35": 1000, "0.3.36": 1000}),
    ("new_scores[input_id] = score + scores[input_id]", {"0.3.19": 1274, "0.3.35": 1332, "0.3.36": 1332}),
    ("if llama_cpp.llama_token_is_eog(self._model.vocab, token):", {"0.3.19": 1354}),
    ("if llama_cpp.llama_vocab_is_eog(self._model.vocab, token):", {"0.3.35": 1412, "0.3.36": 1412}),
    (
        "any_stop = [s for s in stop_sequences if s in all_text]",
        {"0.3.19": 1376, "0.3.35": 1434, "0.3.36": 1434},
    ),
    ("text = all_text[: all_text.index(first_stop)]", {"0.3.19": 1379, "0.3.35": 1437, "0.3.36": 1437}),
    ("if len(completion_tokens) >= max_tokens:", {"0.3.19": 1524, "0.3.35": 1582, "0.3.36": 1582}),
    ("self._input_ids, self._scores[-1, :]", {"0.3.19": 1530, "0.3.35": 1588, "0.3.36": 1588}),
)
"""Text of each line and its number by version of llama-cpp-python; a version without it has no such line."""


def differences(version: str, source: str) -> list[str]:
    """The mirrored lines that this source of `llama.py` does not have where that version has them."""
    lines = source.splitlines()
    expected = [(numbers[version], text) for text, numbers in LINES if version in numbers]
    if not expected:
        return [f"nothing is known of version {version}"]
    return [
        f"line {number} is not {text!r}"
        for number, text in expected
        if number > len(lines) or lines[number - 1].strip() != text
    ]


@functools.cache
def check() -> None:
    """Refuse (`JobError`, unsupported) an installed engine whose mirrored lines are not as recorded."""
    source = Path(llama_cpp.llama.__file__).read_text("utf-8")
    found = differences(llama_cpp.__version__, source)
    if found:
        raise JobError(UNSUPPORTED, f"the oracle does not mirror this engine: {FILE}: {found[0]}")
