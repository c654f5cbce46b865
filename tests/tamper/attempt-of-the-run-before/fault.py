"""What a killed run had begun says nothing of the run that stored it."""

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
        stored = tries.at(found, "shard-stored", **tries.place("drawn.same.on", 0, 2))
        started = found.pop(tries.at(found, "collection-started", network="not-cut"))
        again = dict(started, time=found[stored - 1]["time"])
        found.insert(1, started)
        found.insert(stored, again)

    tries.entries(study, change)
