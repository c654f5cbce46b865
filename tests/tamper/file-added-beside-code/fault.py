"""Python imports what lies beside a module: a new file in code/ would be run."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "code/harness/numpy.py"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "code/harness/numpy.py").write_text("x = 1\n")
