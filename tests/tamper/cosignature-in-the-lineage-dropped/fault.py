"""What an amended seal had of signatures stays."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "cosign/bob@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    (seals.earlier(study) / "cosign/bob@example.org.sig").unlink()
