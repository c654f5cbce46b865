"""Whether a unit may be tried again, and what its verdict is, follows from why it failed."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study, lambda found: found[tries.at(found, "unit-invalid", unit="drawn.same.on")]["body"].pop("cause")
    )
