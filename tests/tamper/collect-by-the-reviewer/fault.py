"""A reviewer collects nothing."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
KEY = "rex"
EXIT = {"collect": 2}
CAUGHT_BY = ("collect",)
NAMED = "collector"


def apply(study: Path, tools: ModuleType) -> None:
    pass
