"""An amended plan that nobody signed is no plan."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    (seals.earlier(study, 1) / "manifest.json.sig").unlink()
