"""What no plan names came no second time either."""

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
        body = found[at]["body"] | tries.place("drawn.same.off", 77, 1) | {"differing": 0}
        tries.add(found, at, "duplicate", **body)

    tries.entries(study, entered)
