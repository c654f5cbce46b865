"""The plan before the amendment is what the amendment is held against."""

import shutil
from pathlib import Path
from types import ModuleType

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/lineage"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(study / "seal/lineage")
