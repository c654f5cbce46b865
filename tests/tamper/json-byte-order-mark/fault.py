"""Bytes in front of the text are part of the file and none of the value."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_bytes(study, b"\xef\xbb\xbf" + (study / "seal/manifest.json").read_bytes())
