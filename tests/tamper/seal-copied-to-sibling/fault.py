"""A copy of this study's manifest in another folder does not excuse seeds spent twice."""

import shutil
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("auditor",)
NAMED = "of twin share"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sibling(study, "twin")
    (study.parent / "twin" / "seal").mkdir()
    shutil.copy(study / "seal" / "manifest.json", study.parent / "twin" / "seal" / "manifest.json")
