"""Recomputing the meta does not recompute the ledger's line."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rewrite_shard(study)
