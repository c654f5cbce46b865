"""Where a build ran is told of each build that the manifest names, of no fewer."""

from pathlib import Path
from types import ModuleType

import tries

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: found[1]["body"].update(environments={}))
