"""A shard that is stored is not drawn again."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study, lambda found: tries.add(found, len(found) - 1, "attempt", **tries.place("drawn.same.on", 1, 2))
    )
