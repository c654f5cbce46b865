"""A folder of a seal that nothing amends belongs to no plan."""

import shutil
from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "0000000000000000000000000000000000000000000000000000000000000000"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.copytree(seals.earlier(study), study / "seal/lineage" / ("0" * 64))
