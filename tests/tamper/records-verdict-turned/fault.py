"""The author turns the verdict on the records."""

from pathlib import Path
from types import ModuleType

import forge

STUDY = "second"
AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "same"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(
        study,
        lambda value: value["configurations"][0]["records"].update(verdict="NOT_REJECTED", reasons=["none"]),
    )
