"""A key that trust/ gives to nobody signs for nobody."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "allowed_signers"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    p.write_text("".join(x for x in p.read_text().splitlines(True) if not x.startswith("ada@")))
