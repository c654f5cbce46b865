"""Only what is sealed is collected."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"collect": 4}
CAUGHT_BY = ("collect",)
NAMED = "not sealed"


def apply(study: Path, tools: ModuleType) -> None:
    pass
