"""Parsers differ on which of two equal keys counts."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, meta_bytes=lambda data: data.replace(b'"rows":', b'"rows":1,"rows":', 1))
