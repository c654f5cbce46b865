"""The tag of an amendment names a commit that holds that very seal."""

from pathlib import Path
from types import ModuleType

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "prereg/coin/amended-1"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "tag", "-f", "-a", "-m", "Amended", "prereg/coin/amended-1", "prereg/coin/sealed")
