"""Decisions wait for all of the evidence."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
EXIT = {"analyse": 4}
CAUGHT_BY = ("analyse",)
NAMED = "a collection is open"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found.pop())
    forge.amend(study)
