"""The executable bit is part of what was sealed."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "coin.py").chmod(0o755)
