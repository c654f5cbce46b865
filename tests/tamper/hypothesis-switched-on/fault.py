"""A mechanism that still acts with every switch at its logical value is another mechanism."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["hypothesis"].update(switch=1e-3))
