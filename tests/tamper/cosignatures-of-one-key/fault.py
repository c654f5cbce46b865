"""Two names with one key are one signature: the seal was never complete."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "1 of 2 "


def apply(study: Path, tools: ModuleType) -> None:
    seals.trusted(study, "cyd", "ada")
    seals.cosign(study, "cyd", "ada")
    seals.stamp(study)
    seals.start(study)
