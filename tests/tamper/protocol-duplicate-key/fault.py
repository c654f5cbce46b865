"""Authored files are parsed as strictly as a machine's: the author sealed two values of one key."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(study, "protocol.json", b'"alpha": 0.05', b'"alpha": 0.05, "alpha": 0.5')
