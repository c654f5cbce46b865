"""A study with a file aux.py cannot be checked out everywhere."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "reserve for a device"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "aux.py").write_text("x = 1\n")
