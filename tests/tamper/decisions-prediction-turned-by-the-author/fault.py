"""A prediction that failed may not be told as held."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "fair-holds"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, lambda value: value["predictions"][0].update(status="HELD"))
