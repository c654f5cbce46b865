"""A few kilobytes that unpack to a quarter of a gigabyte: no more is unpacked than the meta says."""

import zlib
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    bomb = zlib.compressobj(1, zlib.DEFLATED, 31)
    data = b"".join(bomb.compress(bytes(1 << 22)) for _ in range(64)) + bomb.flush()
    forge.shard(study, packed=lambda text: data)
