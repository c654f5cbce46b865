"""Beside the four files of a stamp nothing lies."""

from pathlib import Path
from types import ModuleType

import lives_heads

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/2/note.txt"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "stamps" / "2" / "note.txt").write_text("Stamped in time.\n")
    lives_heads.commit(study)
