"""A name that could rewrite the reader's screen is named without doing so."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "\\x1b[2K", "auditor": ".json"}


def apply(study: Path, tools: ModuleType) -> None:
    (study / "x\x1b[2K.json").write_bytes(b"")
