"""Every sealed configuration is decided, the unwelcome ones too."""

from pathlib import Path
from types import ModuleType

import forge

AT = "analysed"
CAUGHT_BY = ("auditor",)
NAMED = "loaded"


def apply(study: Path, tools: ModuleType) -> None:
    forge.decisions(study, lambda value: value["configurations"].pop())
