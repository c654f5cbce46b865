"""The time in the ledger is that of the token, not what its author would like."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    stamps.enter(study, {}, "2020-01-01T00:00:00.000000+00:00")
