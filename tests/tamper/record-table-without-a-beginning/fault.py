"""Every record has a first position, so the table has the empty prefix."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["records"].pop(0))
