"""A sealed file that is gone cannot be checked, and absence is no pass."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "predictions.json"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "predictions.json").unlink()
