"""A file of holes takes no room on the disk and all of the memory."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    with (study / "coin.py").open("r+b") as file:
        file.truncate(1 << 40)
