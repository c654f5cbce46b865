"""Parsers differ on which of two equal keys counts."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    lines = tools.ledger(study)
    lines[-1] = lines[-1].replace(b'"seq":', b'"seq":1,"seq":')
    tools.write_ledger(study, lines)
