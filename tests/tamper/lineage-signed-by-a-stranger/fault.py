"""An amended plan was sealed by an author, and still is."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sign(study, str((seals.earlier(study) / "manifest.json").relative_to(study)), "eve", "prereg-seal")
