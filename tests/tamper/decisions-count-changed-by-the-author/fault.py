"""A count is derived again, like all else."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "fair"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, lambda value: value["configurations"][0]["bounds"][0].update(k_on=1))
