"""A stamp that the ledger has is owed by nobody any more: without it the time is only told."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp"


def apply(study: Path, tools: ModuleType) -> None:
    for name in (stamps.REQUEST, stamps.RESPONSE):
        (study / name).unlink()
