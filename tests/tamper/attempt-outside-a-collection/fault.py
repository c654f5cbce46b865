"""What is begun after the end of a run is drawn under nobody's eyes."""

from pathlib import Path
from types import ModuleType
from typing import Any

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    def change(found: list[Any]) -> None:
        attempt = tries.drop(found, "attempt", **tries.place("walked.other.on", 0, 1))
        end = tries.at(found, "collection-ended", complete=False)
        found.insert(end + 1, dict(attempt, time=found[end]["time"]))

    tries.entries(study, change)
