"""Nothing comes back that was never there."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "relocated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    other = {"to": "records/main.fair.old/00009.jsonl.gz"}
    seals.again(study, lambda found: found[-1]["body"]["files"][0].update(other), "ada")
