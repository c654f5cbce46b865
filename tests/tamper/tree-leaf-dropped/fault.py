"""A leaf is missing, and every sum and digest was recomputed by somebody without the key."""

from pathlib import Path
from types import ModuleType
from typing import Any

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    def without_the_last(leaves: list[Any]) -> None:
        leaves.pop()

    def less(tree: dict[str, Any]) -> None:
        tree["unexplored"] = 0.125
        tree["admission"]["closed"]["closed"] -= 1

    tools.rewrite_tree(study, without_the_last, less)
    tools.relink(study)
