"""The study's own command decides every draw; one other byte is another experiment."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    tools.flip(study / "coin.py", 10)
