"""A pipe gives other bytes at each reading, and may never end."""

import os
from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "coin.py").unlink()
    os.mkfifo(study / "coin.py")
