"""Seeds that another study reserves are spent twice."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("collect", "auditor")
NAMED = "twin"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
