"""Objects that are fetched when they are asked for are whatever the server says."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "partial clone"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "config", "remote.origin.promisor", "true")
