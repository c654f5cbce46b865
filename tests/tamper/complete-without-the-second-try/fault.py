"""A unit that may be tried again is not given up while the collection is called complete."""

import shutil
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
        for kind in ("attempt", "shard-stored", "duplicate"):
            tries.drop(found, kind, **tries.place("walked.other.on", 0, 2))
        found[-1]["body"]["stored"] -= 1

    shutil.rmtree(study / "records/walked.other.on.attempt-2")
    tries.entries(study, change)
