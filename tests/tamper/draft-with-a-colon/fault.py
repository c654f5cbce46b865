"""A colon names a stream of a file on some systems."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "has the character :"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "coin:one.py").write_text("x = 1\n")
