"""There were commits before the seal, and the manifest says that there were none."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest(study, lambda value: value.update(commit=None))
    forge.sealed_again(study, commit=None)
