"""A shard whose end is cut off unpacks to some of its lines for readers that do not ask for the end."""

import gzip
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    def cut(text: bytes) -> bytes:
        data = gzip.compress(text, 6, mtime=0)
        return data[:9] + b"\xff" + data[10:-8]

    forge.shard(study, packed=cut)
