"""NUL.txt is the device that swallows everything: an ending makes no file of it."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "/path"


def apply(study: Path, tools: ModuleType) -> None:
    forge.listed(study, "NUL.txt")
