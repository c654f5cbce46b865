"""What was stored of a failed attempt stays counted, as it stays where it is."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: found[-1]["body"].update(stored=7))
