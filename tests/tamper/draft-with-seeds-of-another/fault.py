"""Seeds that another study reserves are spent twice."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 2}
CAUGHT_BY = ("seal",)
NAMED = "twin"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
