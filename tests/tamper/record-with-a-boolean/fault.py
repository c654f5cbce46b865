"""False is 0 in some languages and not in a record."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"row":0', b'"row":false')
