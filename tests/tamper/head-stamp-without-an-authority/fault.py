"""A protocol that names no authority has no stamps: there is nobody to believe."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "heads"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps"


def apply(study: Path, tools: ModuleType) -> None:
    seals.amend(study, lambda protocol: protocol.pop("timestamp"))
