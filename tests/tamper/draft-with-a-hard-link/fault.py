"""Another name for the same file can change it while it is sealed."""

import os
from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "NOTES.md"


def apply(study: Path, tools: ModuleType) -> None:
    os.link(study / "NOTES.md", study.parent / "other-name")
