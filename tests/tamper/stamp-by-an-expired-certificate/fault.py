"""A certificate that had ended at the time it stamps stamps nothing."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    answer = stamps.token(study, time="20990101000000Z")
    stamps.enter(study, {stamps.RESPONSE: answer}, "2099-01-01T00:00:00.000000+00:00")
