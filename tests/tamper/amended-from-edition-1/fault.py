"""An amendment keeps the edition: a plan of edition 1 has none."""

from pathlib import Path
from types import ModuleType

import seals

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "is of another edition"


def apply(study: Path, tools: ModuleType) -> None:
    seals.amend(study, lambda protocol: protocol.update(edition=2))
