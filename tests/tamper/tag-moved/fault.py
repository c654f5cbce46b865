"""The tag of the seal names the commit that holds this very seal."""

from pathlib import Path
from types import ModuleType

AT = "audited"
CAUGHT_BY = ("verify", "auditor")
NAMED = "prereg/coin/sealed"


def apply(study: Path, tools: ModuleType) -> None:
    tools.git(study, "tag", "-f", "-a", "-m", "Sealed", "prereg/coin/sealed", "HEAD~4")
