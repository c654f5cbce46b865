"""Entries whose times go back were not written in that order."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[-2].update(time="2031-01-01T00:00:00.000000+00:00"))
