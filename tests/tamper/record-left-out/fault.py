"""A draw whose record is missing would match whatever the reference says."""

import json
from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "drawn.same.off/00000"


def apply(study: Path, tools: ModuleType) -> None:
    def without(lines: list[bytes]) -> list[bytes]:
        value = json.loads(lines[3])
        del value["record"]
        return [*lines[:3], forge.canonical(value), *lines[4:]]

    forge.shard(study, without)
