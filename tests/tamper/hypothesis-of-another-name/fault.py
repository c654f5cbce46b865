"""The law is that of the mechanism that is registered."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["hypothesis"].update(id="H-D2-cfg"))
