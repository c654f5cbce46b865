"""A folder that is a link leads wherever somebody points it later."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "code"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "code").rename(study.parent / "elsewhere")
    (study / "code").symlink_to(study.parent / "elsewhere")
