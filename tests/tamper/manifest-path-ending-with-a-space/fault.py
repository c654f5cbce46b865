"""A space at the end of a folder is dropped elsewhere."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "/path"


def apply(study: Path, tools: ModuleType) -> None:
    forge.listed(study, "own /coin.py")
