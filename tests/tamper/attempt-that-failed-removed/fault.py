"""What was stored of an attempt that failed stays: nobody can see otherwise what was thrown away."""

import shutil
from pathlib import Path
from types import ModuleType

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "records/drawn.same.on/00000"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(study / "records/drawn.same.on")
