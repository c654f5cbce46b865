"""Without its head the ledger's end is anybody's."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "ledger.head.json").unlink()
