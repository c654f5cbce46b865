"""Without roles nobody may do anything."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "roles.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study.parent.parent / "trust/roles.json").unlink()
