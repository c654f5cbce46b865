"""Which result a file is, its name says: k counts the entries."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-"


def apply(study: Path, tools: ModuleType) -> None:
    path = study / tries.KEPT
    path.rename(path.with_name("00000.duplicate-1.jsonl.gz"))
