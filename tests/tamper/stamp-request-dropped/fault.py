"""Without the request nobody can hold the token's nonce against it."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsq"


def apply(study: Path, tools: ModuleType) -> None:
    (study / stamps.REQUEST).unlink()
