"""The meta says which shard it is of."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, meta=lambda value: value.update(shard=1))
