"""Each amended seal lies in the folder of its own digest."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/lineage"


def apply(study: Path, tools: ModuleType) -> None:
    one, two = seals.earlier(study, 0), seals.earlier(study, 1)
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)
