"""The stamp of the seal that was amended says nothing of the new plan."""

from pathlib import Path
from types import ModuleType

import seals
import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.ts"


def apply(study: Path, tools: ModuleType) -> None:
    names = (stamps.REQUEST, stamps.RESPONSE)
    files = {name: (seals.earlier(study) / Path(name).name).read_bytes() for name in names}
    stamps.enter(study, files)
