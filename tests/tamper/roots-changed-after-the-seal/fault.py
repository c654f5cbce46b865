"""Whoever could choose the roots afterwards could stamp any time."""

from pathlib import Path
from types import ModuleType

import stamps

STUDY = "signed"
AT = "stamped"
CAUGHT_BY = ("verify", "auditor")
NAMED = "roots.pem"


def apply(study: Path, tools: ModuleType) -> None:
    stranger = stamps.authority("stranger")
    (study / "roots.pem").write_bytes(stranger.roots)
    answer = stranger.stamp((study / stamps.REQUEST).read_bytes())
    stamps.enter(study, {stamps.RESPONSE: answer})
