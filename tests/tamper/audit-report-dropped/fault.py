"""The ledger says that there was an audit; without its report nobody can say of what."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "report.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "audit/report.json").unlink()
