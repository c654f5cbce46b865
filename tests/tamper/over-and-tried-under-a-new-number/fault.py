"""What ran into the unit's ceiling is over, under whatever number it is tried."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study,
        lambda found: tries.add(found, len(found) - 1, "attempt", **tries.place("walked.same.on", 0, 2)),
    )
