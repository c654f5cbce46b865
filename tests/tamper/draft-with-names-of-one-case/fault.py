"""Two names that differ in case are one file elsewhere."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "COIN.py").write_text("x = 1\n")
