"""The reference of a record says at least as much as is told."""

from pathlib import Path
from types import ModuleType

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    events.resealed(study, lambda c: c["records"][0].update(entry={"tokens": [0], "values": [-1]}))
