"""Nobody audits their own study."""

from pathlib import Path
from types import ModuleType

AT = "analysed"
KEY = "ada"
EXIT = {"audit": 4}
CAUGHT_BY = ("audit",)
NAMED = "author"


def apply(study: Path, tools: ModuleType) -> None:
    pass
