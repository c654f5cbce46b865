"""A value is a number or one of three words."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "drawn.same.off/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"values":[', b'"values":["NaN",')
