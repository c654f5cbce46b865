"""Mechanism hypotheses: executable schedules of a suspected fault, each with the law that follows from it.

One file a hypothesis. Like the oracle they work with the engine's own kernel, in the engine's environment.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from harness.mechanisms.base import Hypothesis
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError

HYPOTHESES: Mapping[str, str] = {
    "H-D1-phys": "harness.mechanisms.h_d1_phys",
    "H-D2-cfg": "harness.mechanisms.h_d2_cfg",
    "H-D2-synthid": "harness.mechanisms.h_d2_synthid",
    "H-D2-xgr": "harness.mechanisms.h_d2_xgr",
    "H-D3-block": "harness.mechanisms.h_d3_block",
    "H-D3-postcheck": "harness.mechanisms.h_d3_postcheck",
}
"""Every hypothesis by the name that it is registered under, and where it is."""


def load(name: str) -> Hypothesis:
    """The hypothesis of that name; `JobError` if there is none, or if its engine is not the one installed."""
    module = HYPOTHESES.get(name)
    if module is None:
        raise JobError(BAD_REQUEST, f"no hypothesis {name!r}; there are: {', '.join(HYPOTHESES)}")
    try:
        hypothesis: Hypothesis = importlib.import_module(module).HYPOTHESIS
    except ImportError as error:
        raise JobError(UNSUPPORTED, f"{name} belongs to another engine: {error}") from error
    return hypothesis
