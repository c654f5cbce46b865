"""H-D3-block: the stopping rule is asked once a block. It explains the two public defects."""

from __future__ import annotations

from harness.mechanisms.base import Hypothesis
from harness.mechanisms.hf_chain import leaves

HYPOTHESIS = Hypothesis(
    name="H-D3-block",
    adapter="hf",
    statement=(
        "Transformers' assisted decoding asks its stopping criteria about a whole block, so that a stop "
        "string completed inside one does not end it, and what follows is returned. Release 5.12.0 does not "
        "cut a block at the horizon either, so that it returns more than max_new_tokens tokens."
    ),
    leaves=leaves,
)
