"""H-D3-postcheck: the last look of the stopping criteria is at proposed tokens that were never drawn."""

from __future__ import annotations

from collections.abc import Iterator

from harness.adapters.base import Adapter
from harness.adapters.llamacpp_features import COMPLETION
from harness.mechanisms.base import Hypothesis, Leaf, opened_of
from harness.mechanisms.llamacpp_lookup import Reads
from harness.mechanisms.llamacpp_lookup import leaves as walk
from harness.wire import UNSUPPORTED, JobError


def leaves(adapter: Adapter, logical: bool) -> Iterator[Leaf]:
    """See `Hypothesis.leaves`; it speaks of `create_completion()` with stopping criteria."""
    features = opened_of(adapter).features
    if features.api != COMPLETION or not features.stopping:
        raise JobError(UNSUPPORTED, f"only {COMPLETION}() asks stopping criteria once more, if there are any")
    return walk(adapter, Reads(postcheck=not logical))


HYPOTHESIS = Hypothesis(
    name="H-D3-postcheck",
    adapter="llamacpp",
    statement=(
        "When the loop of llama-cpp-python's create_completion() has ended, it asks the stopping criteria "
        "about self._input_ids once more (llama_cpp/llama.py, line 1588 in 0.3.35 and 1530 in 0.3.19). The "
        "proposed tokens of the last block are still in it, so that a criterion can be met by a token that "
        "was never drawn, or no longer be met by one that was."
    ),
    leaves=leaves,
)
