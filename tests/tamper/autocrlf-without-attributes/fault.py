"""The sealed .gitattributes keeps git from rewriting line ends; without it a clone may be mangled."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "rm", "-q", ".gitattributes")
    tools.git(study, "commit", "-q", "-m", "No attributes")
    tools.git(study, "config", "core.autocrlf", "true")
    (study / "coin.py").unlink()
    tools.git(study, "checkout", "-q", "--", "coin.py")
    tools.git(study, "checkout", "-q", "HEAD~1", "--", ".gitattributes")
