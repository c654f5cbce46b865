"""A study of edition 1 has no second results: a program of that edition could not read them."""

import shutil
from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-1"


def apply(study: Path, tools: ModuleType) -> None:
    path = tools.first_shard(study)
    shutil.copy(path, path.with_name("00000.duplicate-1.jsonl.gz"))
