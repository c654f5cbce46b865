"""The first attempt lies in the unit's own folder, and nowhere else."""

from pathlib import Path
from types import ModuleType

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "drawn.same.on.attempt-1"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/drawn.same.on").rename(study / "records/drawn.same.on.attempt-1")
