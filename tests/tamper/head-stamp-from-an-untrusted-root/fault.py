"""An authority that the sealed roots do not know can write any time."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    lives_heads.stamp(lives_heads.folders(study)[-1], "stranger")
    lives_heads.commit(study)
