"""Two spellings of one letter are one file here and two files there."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 1}
CAUGHT_BY = ("seal",)
NAMED = "NFC"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "u\u0308ber.py").write_text("x = 1\n")
