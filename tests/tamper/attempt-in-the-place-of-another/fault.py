"""The records of one attempt lie in its own folder."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "drawn.same.on.attempt-"


def apply(study: Path, tools: ModuleType) -> None:
    (study / tries.TWICE).rename(study / "records/drawn.same.on.attempt-3")
