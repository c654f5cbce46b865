"""A pattern in the place of a name would trust whoever comes."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
EXIT = {"verify": 1, "collect": 2, "auditor": 1}
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    line = p.read_text().splitlines()[0]
    p.write_text(p.read_text() + line.replace("ada@example.org", "*") + "\n")
