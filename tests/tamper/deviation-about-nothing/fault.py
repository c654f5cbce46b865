"""A departure is about what the study has."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "deviated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "unfair"


def apply(study: Path, tools: ModuleType) -> None:
    seals.again(study, lambda found: found[-1]["body"].update(about=["unfair"]), "ada")
