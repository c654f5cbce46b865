"""The author counts fewer records that do not match."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "same"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, lambda value: value["configurations"][0]["records"]["bounds"][0].update(k_on=199))
