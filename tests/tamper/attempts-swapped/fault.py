"""The records of one attempt are not those of the other."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    first, second = study / "records/drawn.same.on/00000.jsonl.gz", study / tries.TWICE / "00000.jsonl.gz"
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
