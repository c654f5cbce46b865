"""An amendment keeps the study that it amends."""

from pathlib import Path
from types import ModuleType

import forge
import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "study"


def apply(study: Path, tools: ModuleType) -> None:
    seals.amend(study)
    forge.manifest(study, lambda value: value.update(study="toss"))
