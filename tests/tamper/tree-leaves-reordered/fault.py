"""Leaves have one order, so that one tree has one record; the chain was recomputed without the key."""

from pathlib import Path
from types import ModuleType

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rewrite_tree(study, lambda leaves: leaves.reverse())
    tools.relink(study)
