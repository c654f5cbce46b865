"""A head of an earlier day is signed well, and does not cover the last entries."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    for name in ("ledger.head.json", "ledger.head.json.sig"):
        (study / name).write_text(tools.git(study, "show", f"HEAD~1:./{name}") + "\n")
