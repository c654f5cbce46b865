"""A folder of no unit of the plan is none, also if nothing is in it."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "records/main.other.old"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/main.other.old").mkdir()
