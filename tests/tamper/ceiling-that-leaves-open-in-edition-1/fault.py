"""A study of edition 1 calls INVALID what a ceiling ended."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(study, "protocol.json", b'"on_ceiling": "INVALID"', b'"on_ceiling": "INCONCLUSIVE"')
