"""Past 2^53 a number is read as its neighbour by half of all parsers."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_text(study, b'"size":0', b'"size":9007199254740993')
