"""A field that no schema knows could mean anything to somebody later."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"row":0', b'"row":0,"rowe":0')
