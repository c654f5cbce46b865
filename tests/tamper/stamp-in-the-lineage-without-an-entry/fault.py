"""A stamp that nobody entered, kept of a seal that was amended: the ledger bound none of its bytes."""

from pathlib import Path
from types import ModuleType

import seals
import stamps

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    del tools
    (study / stamps.REQUEST).write_bytes(stamps.request((study / f"{seals.MANIFEST}.sig").read_bytes()))
    (study / stamps.RESPONSE).write_bytes(stamps.token(study))
    seals.amend(study)
