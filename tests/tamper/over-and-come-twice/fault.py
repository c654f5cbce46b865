"""Nothing is told of a unit after it is over, a second result neither."""

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
        stored = tries.at(found, "shard-stored", **tries.place("walked.other.on", 0, 2))
        lost = {"unit": "drawn.same.off", "attempt": 1, "reason": "x", "cause": "study-ceiling"}
        tries.add(found, stored, "unit-invalid", **lost)
        found[-1]["body"]["invalid"] = ["drawn.same.off", "walked.same.on"]

    tries.entries(study, change)
