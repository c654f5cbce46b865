"""A name with a dot in front is a file like any other."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = ".profile"


def apply(study: Path, tools: ModuleType) -> None:
    (study / ".profile").write_text("x\n")
