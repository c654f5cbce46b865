"""Entries carry the digest of the seal under which they were made."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[1]["body"].update(seal="0" * 64))
