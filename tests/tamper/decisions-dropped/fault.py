"""The ledger says that there was an analysis."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "analysis/decisions.json").unlink()
