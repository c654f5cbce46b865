"""A study of edition 1 has no entry deviation: a program of that edition could not read it."""

from pathlib import Path
from types import ModuleType

import seals

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    seals.add(study, "deviation", {"about": [], "text": "x"}, "ada")
