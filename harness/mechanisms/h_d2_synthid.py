"""H-D2-synthid: the SynthID watermark takes every call for a committed token."""

from __future__ import annotations

from functools import partial

from harness.mechanisms.base import Hypothesis
from harness.mechanisms.hf_chain import about

HYPOTHESIS = Hypothesis(
    name="H-D2-synthid",
    adapter="hf",
    statement=(
        "Transformers' SynthIDTextWatermarkLogitsProcessor shifts the last token of what it is shown into "
        "its context, and notes the context as seen, at every call. Prompt lookup's and verification's calls "
        "on tokens that are not committed do so too, so that later keys come from other contexts and "
        "contexts count as repeated that are not."
    ),
    leaves=partial(about, processor="SynthIDTextWatermarkLogitsProcessor"),
)
