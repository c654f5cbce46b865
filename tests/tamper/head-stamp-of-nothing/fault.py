"""A folder of a stamp without a stamp says that there was one."""

from pathlib import Path
from types import ModuleType

STUDY = "heads"
AT = "audited"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "stamps/1").mkdir()
