"""Seeds that another study reserves are spent twice."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("auditor",)
NAMED = "twin"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
