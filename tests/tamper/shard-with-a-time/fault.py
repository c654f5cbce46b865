"""One shard has one spelling: no name, no time."""

import gzip
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.shard(study, packed=lambda text: gzip.compress(text, 6, mtime=1))
