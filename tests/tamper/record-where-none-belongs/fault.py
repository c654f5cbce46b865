"""A configuration without records has none beside its draws."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"row":', b'"record":[],"row":')
