"""What was told of a departure is not told otherwise later, not even by its author."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "signed"
AT = "deviated"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger"


def apply(study: Path, tools: ModuleType) -> None:
    forge.entries(study, lambda found: found[-1]["body"].update(text="Nothing."), "ada")
    tools.git(study, "commit", "-q", "-a", "-m", "Another text")
