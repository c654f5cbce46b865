"""A number of a megabyte of digits takes minutes to read where nothing limits it."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.manifest_text(study, b'"rules":1', b'"rules":' + b"1" * (1 << 20))
