"""A study of edition 2 has no stamps of heads, however good they are."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps"


def apply(study: Path, tools: ModuleType) -> None:
    lives_heads.stamp_present(study)
    lives_heads.commit(study)
