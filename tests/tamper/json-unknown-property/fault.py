"""A field that no schema knows could mean anything to somebody later."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_text(study, b'"rules":1', b'"rules":1,"rulez":1')
