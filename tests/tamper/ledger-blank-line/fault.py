"""An empty line is no entry."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "ledger.jsonl"
    p.write_bytes(p.read_bytes() + b"\n")
