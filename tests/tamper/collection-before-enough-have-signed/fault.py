"""No data before the seal is complete."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "1 of 2 "


def apply(study: Path, tools: ModuleType) -> None:
    seals.stamp(study)
    seals.start(study)
