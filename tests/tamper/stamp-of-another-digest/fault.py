"""The token stamps the digest that the request has, not one of its own."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    stamps.enter(study, {stamps.RESPONSE: stamps.token(study, imprint=b"\0" * 32)})
