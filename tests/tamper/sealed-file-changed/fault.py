"""A sealed file is not what was signed: the digest in the manifest says so."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.flip(study / "protocol.json", 40)
