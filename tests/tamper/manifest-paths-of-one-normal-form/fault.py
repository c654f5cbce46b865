"""Two names that are one after NFC are two files here, and one of them is gone elsewhere."""

from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    data = (study / "coin.py").read_bytes()
    for name in ("\u00fcber.py", "u\u0308ber.py"):
        (study / name).write_bytes(data)

    def listed(value: dict[str, Any]) -> None:
        entry = next(file for file in value["files"] if file["path"] == "coin.py")
        value["files"] += [entry | {"path": "\u00fcber.py"}, entry | {"path": "u\u0308ber.py"}]
        value["files"].sort(key=lambda entry: str(entry["path"]))

    forge.manifest(study, listed)
