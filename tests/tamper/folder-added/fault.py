"""An empty folder is at no known place either."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "records/main.other.old"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/main.other.old").mkdir()
    (study / "records/main.other.old/x").mkdir()
