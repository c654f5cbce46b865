"""Parsers differ on which of two equal keys counts."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    data = (study / "analysis/decisions.json").read_bytes()
    forge.decisions_bytes(study, data.replace(b'"m":', b'"m":9,"m":'))
