"""What came out differently stays as it came."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-2"


def apply(study: Path, tools: ModuleType) -> None:
    path = study / tries.KEPT
    lines = tries.lines_of(path)
    lines[3], lines[4] = tries.lines_of(path.with_name("00000.jsonl.gz"))[3:5]
    path.write_bytes(tries.packed(lines))
