"""A password in a ledger is told to everybody, for ever."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "/body/remote"


def apply(study: Path, tools: ModuleType) -> None:
    remote = "https://ada:secret@example.org/coin.git"
    body = {"remote": remote, "ref": "refs/heads/main", "commit": tools.git(study, "rev-parse", "HEAD")}
    seals.add(study, "pushed", body, "ada")
