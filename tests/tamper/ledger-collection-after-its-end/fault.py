"""Nothing is drawn after the collection was complete."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found.append(found[1]))
