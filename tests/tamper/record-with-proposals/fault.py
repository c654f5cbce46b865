"""An arm without a drafter proposes nothing."""

from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "main.fair.new/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"proposals":0', b'"proposals":1')
