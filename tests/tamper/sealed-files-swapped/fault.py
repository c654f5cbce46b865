"""Two sealed files that exchange their bytes are two wrong ones."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "NOTES.md"


def apply(study: Path, tools: ModuleType) -> None:
    a, b = study / "NOTES.md", study / "coin.py"
    one, two = a.read_bytes(), b.read_bytes()
    a.write_bytes(two)
    b.write_bytes(one)
