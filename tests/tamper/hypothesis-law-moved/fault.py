"""A mechanism's event is where its law is above the one without it."""

from pathlib import Path
from types import ModuleType
from typing import Any

import events

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    def moved(c: dict[str, Any]) -> None:
        law = c["hypothesis"]["law"]
        law[0]["p"], law[1]["p"] = law[1]["p"], law[0]["p"]

    events.resealed(study, moved)
