"""A processor of the study's own is run by the engine: edited after the seal, it is another configuration."""

from pathlib import Path
from types import ModuleType

STUDY = "exact"
CAUGHT_BY = ("verify", "auditor")
NAMED = "own/mine.py"


def apply(study: Path, tools: ModuleType) -> None:
    file = study / "own" / "mine.py"
    file.write_text(file.read_text().replace("return scores", "return scores * 0"))
