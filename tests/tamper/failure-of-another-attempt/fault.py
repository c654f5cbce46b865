"""A unit fails in the attempt that it is in."""

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
        lambda found: found[tries.at(found, "unit-invalid", unit="walked.other.on")]["body"].update(
            attempt=2
        ),
    )
