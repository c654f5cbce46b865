"""The author turns a verdict and signs everything anew; the records still say otherwise."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "fair"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, forge.of("fair", verdict="NOT_REJECTED", reasons=["none"]))
