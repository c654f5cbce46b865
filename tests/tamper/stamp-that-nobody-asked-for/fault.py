"""A study of edition 1 has no stamp: the file belongs to nothing."""

from pathlib import Path
from types import ModuleType

import stamps

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    (study / stamps.RESPONSE).write_bytes(b"a token")
