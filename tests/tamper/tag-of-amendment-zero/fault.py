"""No amendment has the number 0: such a tag names no seal of the lineage."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "prereg/coin/amended-0"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "tag", "-a", "-m", "Amended", "prereg/coin/amended-0", "HEAD")
