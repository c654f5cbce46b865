"""Where a backslash parts folders this is another file."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    def listed(value: dict[str, Any]) -> None:
        value["files"].append(value["files"][0] | {"path": "own\\coin.py"})
        value["files"].sort(key=lambda entry: str(entry["path"]))

    forge.manifest(study, listed)
