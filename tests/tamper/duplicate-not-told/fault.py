"""What lies beside a shard and is not told is hidden."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-2"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(study, lambda found: tries.drop(found, "duplicate", differing=3))
