"""Half a character has no UTF-8, so it has no digest."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_text(study, b'"study":"coin"', b'"study":"\\ud800"')
