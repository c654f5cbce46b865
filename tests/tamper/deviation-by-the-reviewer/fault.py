"""A reviewer tells of the study in a report, not in its name."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "deviated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "rex@example.org has no role"


def apply(study: Path, tools: ModuleType) -> None:
    seals.add(study, "deviation", {"about": [], "text": "Not so."}, "rex")
