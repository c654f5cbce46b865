"""The head is signed by whoever made the last entry, and a reviewer collects nothing."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[-1].update(actor="rex@example.org"), who="rex")
