"""H-D2-cfg: classifier-free guidance keeps the drafter's and rejected tokens in its unconditional context."""

from __future__ import annotations

from functools import partial

from harness.mechanisms.base import Hypothesis
from harness.mechanisms.hf_chain import about

HYPOTHESIS = Hypothesis(
    name="H-D2-cfg",
    adapter="hf",
    statement=(
        "Transformers' UnbatchedClassifierFreeGuidanceLogitsProcessor appends the last token of what it is "
        "shown to its unconditional context, with its cache, at every call after the first. Prompt lookup "
        "calls it on the prefix and on all but the last of the proposed tokens before verification, and "
        "verification calls it on rejected ones; nothing takes these tokens out again."
    ),
    leaves=partial(about, processor="UnbatchedClassifierFreeGuidanceLogitsProcessor"),
)
