"""A key that trust gives to nobody collects nothing."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
KEY = "eve"
EXIT = {"collect": 2}
CAUGHT_BY = ("collect",)
NAMED = "nobody"


def apply(study: Path, tools: ModuleType) -> None:
    pass
