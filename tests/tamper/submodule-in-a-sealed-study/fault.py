"""What a submodule holds is bound by nothing here."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "own"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "init", "-q", str(study / "own"))
    tools.git(study / "own", "commit", "-q", "--allow-empty", "-m", "Own")
    tools.git(study, "-c", "protocol.file.allow=always", "add", "own")
    tools.git(study, "commit", "-q", "-m", "A submodule")
