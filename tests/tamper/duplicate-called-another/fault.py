"""Where nothing is kept, nothing came out differently."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "00000.duplicate-1", "auditor": "differing"}


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study, lambda found: found[tries.at(found, "duplicate", differing=0)]["body"].update(differing=1)
    )
