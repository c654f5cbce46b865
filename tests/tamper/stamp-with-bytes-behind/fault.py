"""What follows a token belongs to nothing."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    stamps.enter(study, {stamps.RESPONSE: (study / stamps.RESPONSE).read_bytes() + b"\0"})
