"""A law of a mechanism has all its mass."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["hypothesis"]["law"][0].update(p=0))
