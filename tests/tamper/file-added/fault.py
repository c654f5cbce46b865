"""Whatever the manifest does not list might have been used: default deny."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "extra.py"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "extra.py").write_text("x = 1")
