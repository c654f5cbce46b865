"""Whoever clones must get what was checked here, and no other bytes."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "records/main.fair.new/00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    shard = tools.first_shard(study)
    data = shard.read_bytes()
    shard.write_bytes(data + b"\0")
    tools.git(study, "commit", "-q", "-a", "-m", "Padded")
    shard.write_bytes(data)
