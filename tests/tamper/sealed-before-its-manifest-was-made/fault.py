"""A manifest that was made after it was entered is not the one that was entered then."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    early = {"time": "2026-01-01T00:00:00.000000+00:00"}
    forge.entries(study, lambda found: found[0].update(early), who="ada")
    forge.amend(study)
