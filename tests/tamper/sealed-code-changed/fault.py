"""The collector runs code/harness; changing it afterwards would make the records unexplainable."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "code/harness/worker.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.flip(study / "code/harness/worker.py", 200)
