"""A sealed file in other letters is a missing one and an unlisted one."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "otes.md"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "NOTES.md").rename(study / "Notes.md")
