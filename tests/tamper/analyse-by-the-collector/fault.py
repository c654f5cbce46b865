"""Who only collects decides nothing."""

from pathlib import Path
from types import ModuleType

AT = "collected"
KEY = "col"
EXIT = {"analyse": 2}
CAUGHT_BY = ("analyse",)
NAMED = "author"


def apply(study: Path, tools: ModuleType) -> None:
    pass
