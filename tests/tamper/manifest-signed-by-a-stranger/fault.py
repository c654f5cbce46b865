"""A key without trust seals nothing, whatever the manifest says of it."""

import base64
import hashlib
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    line = (study.parents[2] / "keys" / "eve.pub").read_text().split()[1]
    key = base64.b64encode(hashlib.sha256(base64.b64decode(line)).digest()).decode().rstrip("=")
    forge.manifest(study, lambda value: value["author"].update(key=f"SHA256:{key}"), who="eve")
