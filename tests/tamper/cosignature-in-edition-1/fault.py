"""A study of edition 1 is sealed by one: the signature belongs to nothing."""

from pathlib import Path
from types import ModuleType

import seals

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign"


def apply(study: Path, tools: ModuleType) -> None:
    seals.cosign(study, "eve", "eve")
