"""The size that is told is that of the file."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "relocated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "size"


def apply(study: Path, tools: ModuleType) -> None:
    seals.again(study, lambda found: found[-1]["body"]["files"][1].update(size=7), "ada")
