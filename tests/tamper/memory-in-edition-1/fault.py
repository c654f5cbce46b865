"""A study of edition 1 has no limit of memory."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(
        study, "protocol.json", b'"on_ceiling": "INVALID"', b'"on_ceiling": "INVALID", "memory_mib": 512'
    )
