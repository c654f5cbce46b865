"""What is moved back is a stored shard; a second result is no stored one, whatever digest is told of it."""

from pathlib import Path
from types import ModuleType

import seals
import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    data = (study / tries.TWICE / "00000.meta.json").read_bytes()
    file = {"from": "/x", "to": tries.KEPT, "size": len(data), "sha256": tools.sha(data)}
    seals.add(study, "relocation", {"reason": "x", "files": [file]}, "col")
