"""A file that no plan names is no record."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "extra.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/extra.jsonl").write_text("{}\n")
