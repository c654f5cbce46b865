"""The reviewer makes analysis and audit anew and signs the last head: the author signed no such analysis."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rewrite_analysis(study, b"DIFFERS", b"NOT_REJECTED")
