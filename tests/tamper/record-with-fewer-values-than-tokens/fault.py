"""Each token of an entry has its value."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "drawn.same.off/00000"


def apply(study: Path, tools: ModuleType) -> None:
    forge.record(study, b'"tokens":[0,1],"values"', b'"tokens":[0,1,2],"values"')
