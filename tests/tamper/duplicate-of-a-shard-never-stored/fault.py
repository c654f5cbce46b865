"""A second result is of a shard that is stored, and this one never was."""

from pathlib import Path
from types import ModuleType
from typing import Any

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    def entered(found: list[Any]) -> None:
        at = tries.at(found, "duplicate")
        body = found[at]["body"] | tries.place("walked.same.on", 0, 1) | {"differing": 0}
        tries.add(found, at, "duplicate", **body)

    tries.entries(study, entered)
