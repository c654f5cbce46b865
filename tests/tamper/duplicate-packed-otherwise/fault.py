"""The bytes of a second result are those that were told, also where they unpack to the same."""

import gzip
from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.duplicate-2"


def apply(study: Path, tools: ModuleType) -> None:
    path = study / tries.KEPT
    data = gzip.compress(gzip.decompress(path.read_bytes()), 1, mtime=0)
    path.write_bytes(data[:9] + b"\xff" + data[10:])
