"""Objects that were moved away, to a place that is not there, are missing."""

import shutil
from pathlib import Path
from types import ModuleType

EXIT = {"verify": 1, "auditor": 3}
CAUGHT_BY = ("verify", "auditor")
NAMED = "git"


def apply(study: Path, tools: ModuleType) -> None:
    objects = study.parent.parent / ".git/objects"
    shutil.move(objects, study.parents[2] / "objects")
    (objects / "info").mkdir(parents=True)
    (objects / "info/alternates").write_text("/nonexistent/objects\n")
