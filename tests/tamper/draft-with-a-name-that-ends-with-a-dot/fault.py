"""A folder whose name ends with a dot is another one elsewhere."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "ends with a dot"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "own.").mkdir()
    (study / "own./coin.py").write_text("x = 1\n")
