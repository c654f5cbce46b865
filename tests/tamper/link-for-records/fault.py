"""Records behind a link are not in the study."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "records"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records").rename(study.parents[2] / "elsewhere")
    (study / "records").symlink_to(study.parents[2] / "elsewhere")
