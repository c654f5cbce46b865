"""What was drawn before the plan was sealed is not what the plan asks for."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, meta=lambda value: value.update(started="2026-01-01T00:00:00.000000+00:00"))
