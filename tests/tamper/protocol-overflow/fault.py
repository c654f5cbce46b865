"""An infinite threshold would never be passed."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(study, "protocol.json", b'"threshold": 0.01', b'"threshold": 1e400')
