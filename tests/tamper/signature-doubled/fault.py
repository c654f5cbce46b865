"""A second signature behind the first one is no part of it."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "seal/manifest.json.sig"
    p.write_bytes(p.read_bytes() * 2)
