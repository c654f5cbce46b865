"""A text of megabytes where a name belongs is refused, and is not shown in full."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_text(study, b'"study":"coin"', b'"study":"' + b"x" * (1 << 22) + b'"')
