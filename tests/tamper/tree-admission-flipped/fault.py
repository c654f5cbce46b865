"""A check that failed would make the configuration VOID: it was turned in the meta alone."""

from pathlib import Path
from types import ModuleType
from typing import Any

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    def turned(tree: dict[str, Any]) -> None:
        tree["admission"]["replay"] |= {"differences": 1, "ok": False}

    tools.rewrite_tree(study, tree=turned)
