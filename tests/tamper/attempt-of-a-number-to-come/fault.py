"""The second attempt begins when the first has failed, not before."""

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
        lambda found: found[tries.at(found, "attempt", **tries.place("walked.other.off", 0, 1))][
            "body"
        ].update(attempt=2),
    )
