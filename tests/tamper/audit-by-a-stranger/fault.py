"""A key that trust gives to nobody audits nothing."""

from pathlib import Path
from types import ModuleType

AT = "analysed"
KEY = "eve"
EXIT = {"audit": 2}
CAUGHT_BY = ("audit",)
NAMED = "nobody"


def apply(study: Path, tools: ModuleType) -> None:
    pass
