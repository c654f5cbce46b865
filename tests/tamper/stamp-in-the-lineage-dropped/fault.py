"""What an amended seal had of a stamp stays: the ledger says that it was there."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    (seals.earlier(study) / "timestamp.tsr").unlink()
