"""What is sealed is what is committed."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 4}
CAUGHT_BY = ("seal",)
NAMED = "NOTES.md"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "NOTES.md").write_text("Otherwise.\n")
