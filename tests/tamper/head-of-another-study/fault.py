"""A head is of one study; its signature travels with it."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.head(study, {"study": "other"})
