"""A gap that was smoothed is not what the records give."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "fair"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, forge.of("fair", D=0.1))
