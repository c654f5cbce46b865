"""The signed head names the last line."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger"


def apply(study: Path, tools: ModuleType) -> None:
    tools.write_ledger(study, tools.ledger(study)[:-1])
