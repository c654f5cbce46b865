"""The chain fixes the order."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    lines = tools.ledger(study)
    lines[2], lines[3] = lines[3], lines[2]
    tools.write_ledger(study, lines)
