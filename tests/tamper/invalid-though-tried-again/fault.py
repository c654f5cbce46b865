"""A unit that was tried again and came through is not lost."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: found[-1]["body"].update(invalid=["drawn.same.on", "walked.same.on"]))
