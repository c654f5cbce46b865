"""Whoever sealed has signed: a second signature of theirs is no second person."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "amended"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/ada@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.cosign(study, "ada", "ada")
