"""NaN is neither above a threshold nor below it."""

import re
from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    text = (study / "analysis/decisions.json").read_bytes()
    forge.decisions_bytes(study, re.sub(rb'"alpha":[0-9.]+', b'"alpha":NaN', text))
