"""A stamp lies in the folder of the entry that its head names, and attests no more."""

import shutil
from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(study / "stamps" / "2")
    lives_heads.folders(study)[-1].rename(study / "stamps" / "2")
    lives_heads.commit(study)
