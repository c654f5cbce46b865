"""Recomputing the digests does not recompute the signature."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.resum(study, "coin.py", b"# other\n")
