"""An authority that the sealed roots do not know can write any time."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp.tsr"


def apply(study: Path, tools: ModuleType) -> None:
    stranger = stamps.authority("stranger")
    answer = stranger.stamp((study / stamps.REQUEST).read_bytes())
    stamps.enter(study, {stamps.RESPONSE: answer})
