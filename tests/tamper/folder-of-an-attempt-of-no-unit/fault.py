"""A unit that no plan names is not tried again either."""

from pathlib import Path
from types import ModuleType

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "records/a.b.c.attempt-2"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "records/a.b.c.attempt-2").mkdir()
