"""Evidence that no commit holds any more was taken out of the history."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "no commit "


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "reset", "-q", "--mixed", "HEAD~2")
