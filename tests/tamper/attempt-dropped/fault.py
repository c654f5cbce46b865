"""A shard that nobody said was begun was drawn where nobody saw how often."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: tries.drop(found, "attempt", **tries.place("drawn.same.on", 1, 2)))
