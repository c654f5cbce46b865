"""The seal was never committed: nothing shows when it was made."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "checkout", "-q", "--orphan", "other")
    tools.git(study, "rm", "-q", "-r", "--cached", ".")
    tools.git(study, "add", "NOTES.md")
    tools.git(study, "commit", "-q", "-m", "Notes")
