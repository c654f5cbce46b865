"""The probability of a choice is the engine's own, and the ledger binds the line it stands in."""

from pathlib import Path
from types import ModuleType
from typing import Any

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000"


def apply(study: Path, tools: ModuleType) -> None:
    def heavier(leaves: list[Any]) -> None:
        leaves[0]["p"], leaves[1]["p"] = leaves[1]["p"], leaves[0]["p"]

    tools.rewrite_tree(study, heavier)
