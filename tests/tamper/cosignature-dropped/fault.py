"""A signature that the ledger has must still be there."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "cyd@example.org"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "seal/cosign/cyd@example.org.sig").unlink()
