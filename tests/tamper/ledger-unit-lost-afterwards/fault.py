"""A unit may not be declared lost once its draws are known and the collection is over."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    def lost(found: list[Any]) -> None:
        body = {"unit": "main.fair.new", "attempt": 1, "reason": "it looked wrong"}
        found.insert(len(found) - 1, found[2] | {"type": "unit-invalid", "body": body})

    forge.entries(study, lost)
