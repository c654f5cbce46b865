"""H-D2-xgr: the grammar's matcher accepts tokens that are not committed."""

from __future__ import annotations

from functools import partial

from harness.mechanisms.base import Hypothesis
from harness.mechanisms.hf_chain import about

HYPOTHESIS = Hypothesis(
    name="H-D2-xgr",
    adapter="hf",
    statement=(
        "xgrammar's LogitsProcessor for Transformers feeds the last token of what it is shown to its "
        "grammar matcher at every call after the first, and asserts that the grammar accepts it. Prompt "
        "lookup's calls and those on rejected tokens advance the matcher past tokens that are not committed, "
        "so that later calls mask by another state, or fail."
    ),
    leaves=partial(about, processor="XgrammarLogitsProcessor"),
)
