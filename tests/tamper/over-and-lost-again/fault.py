"""A unit that is over cannot be lost once more, for a better reason."""

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
        lambda found: tries.add(
            found,
            len(found) - 1,
            "unit-invalid",
            unit="walked.same.on",
            attempt=1,
            reason="x",
            cause="engine",
        ),
    )
