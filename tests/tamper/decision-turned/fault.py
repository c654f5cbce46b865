"""A verdict edited to its opposite is not what the ledger's digest names."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "analysis/decisions.json"
    p.write_bytes(p.read_bytes().replace(b"DIFFERS", b"NOT_REJECTED"))
