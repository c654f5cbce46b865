"""Every sealed draw is made once."""

from pathlib import Path
from types import ModuleType

AT = "collected"
EXIT = {"collect": 4}
CAUGHT_BY = ("collect",)
NAMED = "collected"


def apply(study: Path, tools: ModuleType) -> None:
    pass
