"""JSON is UTF-8 here, and nothing is guessed."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_bytes(study, (study / "seal/manifest.json").read_text().encode("utf-16"))
