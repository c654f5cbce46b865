"""An engine that returned something else for the same seed is not called steady."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    (study / tries.KEPT).unlink()
    tries.entries(
        study, lambda found: found[tries.at(found, "duplicate", differing=3)]["body"].update(differing=0)
    )
