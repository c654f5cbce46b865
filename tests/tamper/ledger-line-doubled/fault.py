"""Each line has one place."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    lines = tools.ledger(study)
    tools.write_ledger(study, [*lines[:3], lines[2], *lines[3:]])
