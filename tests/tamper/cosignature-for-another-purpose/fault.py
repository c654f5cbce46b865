"""A signature that was made for a ledger's head signs no seal."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/cyd@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    data = (study / seals.MANIFEST).read_bytes()
    seals.countersigned(study, seals.signature(study, "cyd", data, "prereg-ledger"))
