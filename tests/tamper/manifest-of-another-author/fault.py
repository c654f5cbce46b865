"""The manifest names its author, and the key must be that author's."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest(study, lambda value: value["author"].update(principal="rex@example.org"))
