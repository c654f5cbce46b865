"""Draws of another environment are not those that were sealed."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[1]["body"]["environments"].update(plain="0" * 64))
