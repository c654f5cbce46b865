"""A space before the first dot does not save the name of a device."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "/path"


def apply(study: Path, tools: ModuleType) -> None:
    forge.listed(study, "aux .json")
