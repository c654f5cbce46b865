"""A plan without its mechanisms is another plan."""

from pathlib import Path
from types import ModuleType

STUDY = "second"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "hypotheses.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "hypotheses.json").unlink()
