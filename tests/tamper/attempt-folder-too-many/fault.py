"""The protocol has two attempts, and nothing of a third."""

import shutil
from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "drawn.same.on.attempt-3"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.copytree(study / tries.TWICE, study / "records/drawn.same.on.attempt-3")
