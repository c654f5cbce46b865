"""A study of edition 1 has one attempt."""

import shutil
from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "main.fair.new.attempt-2"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.copytree(study / "records/main.fair.new", study / "records/main.fair.new.attempt-2")
