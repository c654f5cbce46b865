"""Somebody without trust signs in the name of a signer."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/cyd@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.countersigned(study, seals.signature(study, "eve", (study / seals.MANIFEST).read_bytes()))
