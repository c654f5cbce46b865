"""A reader sees beside a verdict that its unit was tried twice."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "third"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "attempts"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, forge.of("same", attempts={"off": 1, "on": 1}))
