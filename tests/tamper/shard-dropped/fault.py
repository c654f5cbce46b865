"""A shard in the ledger must lie on disk."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    tools.first_shard(study).unlink()
