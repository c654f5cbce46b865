"""A link can point to other bytes after the check."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    target = study.parent / "elsewhere.json"
    (study / "events.json").rename(target)
    (study / "events.json").symlink_to(target)
