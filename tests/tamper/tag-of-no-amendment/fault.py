"""A tag of an amendment that never was tells of a plan that nobody sealed."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "prereg/coin/amended-3"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "tag", "-a", "-m", "Amended", "prereg/coin/amended-3", "HEAD")
