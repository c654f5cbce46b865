"""A shard that was done before it was begun was not drawn at those times."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    def swapped(value: dict[str, Any]) -> None:
        value.update(started=value["ended"], ended=value["started"])

    forge.shard(study, meta=swapped)
