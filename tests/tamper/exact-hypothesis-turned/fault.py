"""The author turns what the tree says of a mechanism."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "other"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(
        study, lambda value: value["exact"]["configurations"][0]["hypothesis"].update(status="DEPARTS")
    )
