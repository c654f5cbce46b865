"""An amendment that was made after it was entered is not the one that was entered then."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    seals.again(study, lambda found: found[-1].update(time=found[-2]["time"]), "ada")
