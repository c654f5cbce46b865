"""A seal recommitted after the records no longer comes before them."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "order"


def apply(study: Path, tools: ModuleType) -> None:
    tools.rewrite_history(study)
