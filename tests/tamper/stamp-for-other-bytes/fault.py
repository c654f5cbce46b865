"""A stamp of other bytes than the seal's signature tells nothing of the seal."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.ts"


def apply(study: Path, tools: ModuleType) -> None:
    request = stamps.request(b"another signature")
    (study / stamps.REQUEST).write_bytes(request)
    stamps.enter(study, {stamps.REQUEST: request, stamps.RESPONSE: stamps.token(study)})
