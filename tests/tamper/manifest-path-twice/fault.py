"""A file that is listed twice has two digests to choose from."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest(study, lambda value: value["files"].insert(1, value["files"][0]))
