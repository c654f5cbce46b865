"""A stamp that does not suit somebody was committed, and is taken out of the folder: it was evidence."""

import shutil
from pathlib import Path
from types import ModuleType

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(min((study / "stamps").iterdir()))
