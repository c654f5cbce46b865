"""The reviewer, who judges the study, has no part in its seal."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "rex@example.org has no role"


def apply(study: Path, tools: ModuleType) -> None:
    seals.stamp(study, "rex")
