"""A remote is told without the user who pushes there."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "/body/remote"


def apply(study: Path, tools: ModuleType) -> None:
    body = {"ref": "refs/heads/main", "commit": tools.git(study, "rev-parse", "HEAD")}
    seals.add(study, "pushed", {"remote": "git@example.org:coin.git", **body}, "ada")
