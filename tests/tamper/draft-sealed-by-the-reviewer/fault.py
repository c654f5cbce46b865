"""Who reviews does not seal."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 2}
KEY = "rex"
CAUGHT_BY = ("seal",)
NAMED = "author"


def apply(study: Path, tools: ModuleType) -> None:
    pass
