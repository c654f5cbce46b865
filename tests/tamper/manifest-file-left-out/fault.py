"""What is not listed is not sealed, though it lies there."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    def without(value: dict[str, Any]) -> None:
        value["files"] = [entry for entry in value["files"] if entry["path"] != "coin.py"]

    forge.manifest(study, without)
