"""An amendment comes before any collection: afterwards it is a departure, and told as one."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    seals.start(study)
    seals.amend(study)
