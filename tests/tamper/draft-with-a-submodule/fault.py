"""What a submodule holds would not be sealed."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 2}
CAUGHT_BY = ("seal",)
NAMED = "own"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "init", "-q", str(study / "own"))
    tools.git(study / "own", "commit", "-q", "--allow-empty", "-m", "Own")
    tools.git(study, "add", "own")
    tools.git(study, "commit", "-q", "-m", "A submodule")
