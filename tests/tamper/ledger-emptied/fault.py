"""A ledger without entries is that of no state."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "ledger.jsonl").write_bytes(b"")
