"""A command that may run here and not in a clone is another command."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "update-index", "--chmod=+x", "coin.py")
    tools.git(study, "commit", "-q", "-m", "Executable")
