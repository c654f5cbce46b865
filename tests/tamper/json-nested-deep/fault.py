"""A parser that recurses runs out of stack; the depth is limited."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_bytes(study, b"[" * 100_000 + b"]" * 100_000 + b"\n")
