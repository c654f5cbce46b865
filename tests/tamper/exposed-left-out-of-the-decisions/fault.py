"""A decision of edition 2 that leaves out `exposed` is none."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "same"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, lambda value: value["configurations"][0].pop("exposed"))
