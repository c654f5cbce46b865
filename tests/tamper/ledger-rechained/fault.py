"""A chain recomputed by somebody without the key lacks the head's signature."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rechain(study)
