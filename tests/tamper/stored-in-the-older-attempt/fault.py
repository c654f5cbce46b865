"""What is stored of an attempt that had failed before was chosen afterwards."""

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
        stored = tries.drop(found, "shard-stored", **tries.place("drawn.same.on", 0, 1))
        failed = tries.at(found, "unit-invalid", unit="drawn.same.on")
        found.insert(failed + 1, dict(stored, time=found[failed]["time"]))

    tries.entries(study, change)
