"""`git replace` shows another history than the one that the commits name."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "no ancestor", "auditor": "records/"}


def apply(study: Path, tools: ModuleType) -> None:
    good = tools.git(study, "rev-parse", "HEAD")
    tools.rewrite_history(study)
    tools.git(study, "replace", tools.git(study, "rev-parse", "HEAD"), good)
