"""code/ is what the collector runs; sealing writes it."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 4}
CAUGHT_BY = ("seal",)
NAMED = "code/"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "code").mkdir()
    (study / "code/harness.py").write_text("x = 1\n")
