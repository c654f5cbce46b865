"""An amendment that the ledger does not have was told to nobody."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    seals.amend(study)
    seals.again(study, lambda found: found.pop(), "ada")
