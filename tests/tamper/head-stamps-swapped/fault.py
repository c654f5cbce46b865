"""The token of another stamp is of another head, though each is good by itself."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    one, two = (folder / "timestamp.tsr" for folder in lives_heads.folders(study)[:2])
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    lives_heads.commit(study)
