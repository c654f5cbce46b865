"""A history that was cut off proves no order."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "shallow"


def apply(study: Path, tools: ModuleType) -> None:
    repository = study.parent.parent
    shallow = repository.parent / "shallow"
    tools.git(study, "clone", "-q", "--depth", "1", f"file://{repository}", str(shallow))
    shutil.rmtree(repository / ".git")
    shutil.move(shallow / ".git", repository / ".git")
