"""Only the seal itself has a stamp: a cosignature by a stolen key never counts."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "cosign/bob@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "bob", "compromised", "2099-01-01T00:00:00+00:00")
