"""A second result of a shard that came once is somebody's own."""

import shutil
from pathlib import Path
from types import ModuleType

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-1"


def apply(study: Path, tools: ModuleType) -> None:
    path = study / "records/drawn.same.off"
    shutil.copy(path / "00000.jsonl.gz", path / "00000.duplicate-1.jsonl.gz")
