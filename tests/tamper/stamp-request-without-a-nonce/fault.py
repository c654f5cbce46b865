"""A request without a nonce can be answered by a token of any age."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.ts"


def apply(study: Path, tools: ModuleType) -> None:
    request = stamps.request((study / "seal/manifest.json.sig").read_bytes(), nonce=None)
    (study / stamps.REQUEST).write_bytes(request)
    stamps.enter(study, {stamps.RESPONSE: stamps.token(study)})
