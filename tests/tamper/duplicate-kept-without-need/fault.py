"""A copy of the same is no evidence, and a place to hide."""

import shutil
from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-1"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.copy(study / tries.TWICE / "00000.jsonl.gz", study / tries.TWICE / "00000.duplicate-1.jsonl.gz")
