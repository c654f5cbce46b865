"""A stamp behind a link lies somewhere else."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    folder = lives_heads.folders(study)[-1]
    folder.rename(study.parents[2] / "elsewhere")
    folder.symlink_to(study.parents[2] / "elsewhere")
