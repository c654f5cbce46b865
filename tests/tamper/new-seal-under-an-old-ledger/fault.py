"""A seal made anew after the records is not the one that they were drawn under."""

from pathlib import Path
from types import ModuleType

import forge

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(study, "protocol.json", b'"threshold": 0.01', b'"threshold": 0.5')
