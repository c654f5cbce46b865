"""Behind a colon lies another stream of the same file on some systems."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "/path"


def apply(study: Path, tools: ModuleType) -> None:
    forge.listed(study, "coin.py:hidden")
