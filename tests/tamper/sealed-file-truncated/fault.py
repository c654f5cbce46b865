"""A file that lost its last byte is another file."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "events.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "events.json"
    p.write_bytes(p.read_bytes()[:-1])
