"""A head in a stamp by a key that was lost before counts no more than anywhere else."""

from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "col", "lost", "2020-01-01T00:00:00+00:00")
    lives_heads.commit(study)
