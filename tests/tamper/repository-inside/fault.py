"""A repository of its own within the study would answer for its history."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = ".git"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "init", "-q", str(study))
