"""What a ceiling left open is called so, as the protocol says."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

STUDY = "third"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "INCONCLUSIVE"


def apply(study: Path, tools: ModuleType) -> None:
    def change(value: dict[str, Any]) -> None:
        one = next(c for c in value["exact"]["configurations"] if c["id"] == "same")
        assert one["reasons"] == ["ceiling"]
        one.update(verdict="INVALID", reasons=["unit-lost"])

    forge.decisions(study, change)
