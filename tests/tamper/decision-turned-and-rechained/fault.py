"""Even with every digest recomputed, the auditor derives the verdict again, and the head is unsigned."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "analysis/decisions.json"
    p.write_bytes(p.read_bytes().replace(b"DIFFERS", b"NOT_REJECTED"))
    tools.rechain(study, decisions=True)
