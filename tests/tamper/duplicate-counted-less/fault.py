"""How many draws came out differently is recounted."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "differing"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study, lambda found: found[tries.at(found, "duplicate", differing=3)]["body"].update(differing=2)
    )
