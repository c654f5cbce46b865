"""Only an author ends a study."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "col@example.org has no role"


def apply(study: Path, tools: ModuleType) -> None:
    seals.add(study, "closed", {"reason": "Enough."}, "col")
