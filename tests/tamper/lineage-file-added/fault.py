"""Nothing lies beside an amended seal that was not there when it was amended."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "note.json"


def apply(study: Path, tools: ModuleType) -> None:
    (seals.earlier(study) / "note.json").write_text("{}")
