"""Decisions that no analysis entered were made by nobody."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "analysis").mkdir()
    (study / "analysis/decisions.json").write_text("{}\n")
