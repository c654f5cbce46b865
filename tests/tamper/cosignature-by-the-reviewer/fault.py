"""A reviewer signs no seal, and stands in no list of signers."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/rex@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.cosign(study, "rex", "rex")
