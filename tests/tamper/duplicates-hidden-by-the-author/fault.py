"""A reader sees beside a verdict that draws came out differently."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "third"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "duplicates"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(
        study, forge.of("same", duplicates={arm: {"copies": 0, "differing": 0} for arm in ("off", "on")})
    )
