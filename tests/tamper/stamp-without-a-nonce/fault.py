"""A token without the request's nonce may answer another request."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    stamps.enter(study, {stamps.RESPONSE: stamps.token(study, nonce=None)})
