"""A reference that a stranger seals is no reference."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["records"][0]["entry"]["values"].reverse(), "eve")
