"""A name that is no text can be neither listed nor told apart."""

import os
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "UTF-8", "auditor": "bad\\udcff.json: a name that is not UTF-8"}


def apply(study: Path, tools: ModuleType) -> None:
    (study / os.fsdecode(b"bad\xff.json")).write_bytes(b"")
