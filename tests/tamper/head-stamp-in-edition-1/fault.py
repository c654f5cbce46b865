"""A study of edition 1 has no stamps of heads."""

from pathlib import Path
from types import ModuleType

import lives_heads

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps"


def apply(study: Path, tools: ModuleType) -> None:
    lives_heads.stamp_present(study)
    lives_heads.commit(study)
