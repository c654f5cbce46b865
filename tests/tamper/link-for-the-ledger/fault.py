"""The ledger may not be another study's through a link."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "ledger.jsonl").rename(study.parents[2] / "elsewhere")
    (study / "ledger.jsonl").symlink_to(study.parents[2] / "elsewhere")
