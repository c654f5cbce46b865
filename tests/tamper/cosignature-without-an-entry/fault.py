"""A signature that the ledger does not have was made at no known time."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/cyd@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.again(study, lambda found: found.pop(), "bob")
