"""After a study was closed nothing follows."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "closed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    seals.add(study, "deviation", {"about": [], "text": "One more thing."}, "ada")
