"""The meta says how much there is to unpack, and may not say too much."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, meta=lambda value: value.update(lines_size=1 << 50))
