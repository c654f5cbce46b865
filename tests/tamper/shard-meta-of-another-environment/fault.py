"""Every shard was drawn in the sealed environment."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, meta=lambda value: value.update(environment="0" * 64))
