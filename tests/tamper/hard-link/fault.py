"""Another name for the same file can change it after the check."""

import os
from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    os.link(study / "protocol.json", study.parent / "other-name")
