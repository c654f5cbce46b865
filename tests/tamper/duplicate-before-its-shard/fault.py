"""What comes before the shard is stored is no second result."""

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
        one = tries.drop(found, "duplicate", **tries.place("walked.other.on", 0, 2))
        stored = tries.at(found, "shard-stored", **tries.place("walked.other.on", 0, 2))
        found.insert(stored, dict(one, time=found[stored]["time"]))

    tries.entries(study, change)
