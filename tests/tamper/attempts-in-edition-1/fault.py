"""Whoever may try again says so in the edition that knows how: a study of edition 1 has one attempt."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    forge.sealed_text(study, "protocol.json", b'"attempts": 1', b'"attempts": 2')
