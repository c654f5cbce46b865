"""Who has no role makes no entry."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[2].update(actor="eve@example.org"))
