"""The stamp of the seal is of other bytes than a head's signature."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    folder = lives_heads.folders(study)[-1]
    for name in ("timestamp.tsq", "timestamp.tsr"):
        (folder / name).write_bytes((study / "seal" / name).read_bytes())
    lives_heads.commit(study)
