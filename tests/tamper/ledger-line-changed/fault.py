"""A line's digest is in the next line."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "ledger.jsonl"
    p.write_bytes(p.read_bytes().replace(b'"shard":1', b'"shard":0', 1))
