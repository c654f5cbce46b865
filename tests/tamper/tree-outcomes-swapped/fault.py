"""Two leaves return each other's outcome, with each other's digest: the weights stay, the law does not."""

from pathlib import Path
from types import ModuleType
from typing import Any

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000"


def apply(study: Path, tools: ModuleType) -> None:
    def swapped(leaves: list[Any]) -> None:
        for field in ("outcome", "digest"):
            leaves[0][field], leaves[3][field] = leaves[3][field], leaves[0][field]

    tools.rewrite_tree(study, swapped)
