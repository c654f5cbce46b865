"""A superscript one counts as a digit where ports have names."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "/path"


def apply(study: Path, tools: ModuleType) -> None:
    forge.listed(study, "COM¹")
