"""A backslash parts folders elsewhere."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "backslash"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "own\\coin.py").write_text("x = 1\n")
