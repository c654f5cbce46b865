"""An author whom the protocol does not name completes no seal."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/eve@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.trusted(study, "eve", "eve")
    seals.cosign(study, "eve", "eve")
