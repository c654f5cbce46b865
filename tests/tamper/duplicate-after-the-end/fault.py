"""A second result is told in the run that found it."""

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
        one = tries.drop(found, "duplicate", differing=3)
        end = tries.at(found, "collection-ended", complete=False)
        found.insert(end + 1, dict(one, time=found[end]["time"]))

    tries.entries(study, change)
