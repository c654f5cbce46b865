"""A limit of memory that nothing enforces is not promised."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "third"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(
        study,
        "protocol.json",
        b'"on_ceiling": "INCONCLUSIVE"',
        b'"on_ceiling": "INCONCLUSIVE", "memory_mib": 512',
    )
