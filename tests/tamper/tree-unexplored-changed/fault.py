"""Mass that is said to be unexplored would widen the interval; the chain was recomputed without the key."""

from pathlib import Path
from types import ModuleType
from typing import Any

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    def wider(tree: dict[str, Any]) -> None:
        tree["unexplored"] = 0.5

    tools.rewrite_tree(study, tree=wider)
    tools.relink(study)
