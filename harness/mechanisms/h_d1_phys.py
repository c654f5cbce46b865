"""H-D1-phys: a processor is shown the evaluation buffer, unverified tokens included."""

from __future__ import annotations

from collections.abc import Iterator

from harness.adapters.base import Adapter
from harness.mechanisms.base import Hypothesis, Leaf, opened_of
from harness.mechanisms.llamacpp_lookup import Reads
from harness.mechanisms.llamacpp_lookup import leaves as walk
from harness.wire import UNSUPPORTED, JobError


def leaves(adapter: Adapter, logical: bool) -> Iterator[Leaf]:
    """See `Hypothesis.leaves`; it speaks of configurations with a processor."""
    if not opened_of(adapter).features.processors:
        raise JobError(UNSUPPORTED, "there is no logits processor to be shown anything")
    return walk(adapter, Reads(processors=not logical))


HYPOTHESIS = Hypothesis(
    name="H-D1-phys",
    adapter="llamacpp",
    statement=(
        "llama-cpp-python's sampler hands its processors self._input_ids (llama_cpp/llama.py, line 742 in "
        "0.3.35 and 716 in 0.3.19): everything evaluated, the proposed tokens of the block at and after the "
        "position included, while the scores are those of the logical prefix."
    ),
    leaves=leaves,
)
