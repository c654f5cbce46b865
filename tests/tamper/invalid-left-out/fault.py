"""A unit that is over is told at the end."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: found[-1]["body"].update(invalid=[]))
