"""Request and token of another stamp are of another head."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    one, two = lives_heads.folders(study)[:2]
    for name in ("timestamp.tsq", "timestamp.tsr"):
        first, second = (one / name).read_bytes(), (two / name).read_bytes()
        (one / name).write_bytes(second)
        (two / name).write_bytes(first)
    lives_heads.commit(study)
