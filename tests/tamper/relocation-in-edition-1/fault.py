"""A study of edition 1 has no entry relocation: a program of that edition could not read it."""

from pathlib import Path
from types import ModuleType

import seals

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    path = tools.first_shard(study)
    name, data = str(path.relative_to(study)), path.read_bytes()
    file = {"from": "/x", "to": name, "size": len(data), "sha256": tools.sha(data)}
    seals.add(study, "relocation", {"reason": "x", "files": [file]}, "col")
