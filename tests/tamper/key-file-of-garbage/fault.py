"""One line that is not understood refuses the whole file."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
EXIT = {"verify": 1, "collect": 2, "auditor": 1}
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    p.write_text(p.read_text() + "whoever signs\n")
