"""A key signs nothing before its first day."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = {"verify": "valid", "collect": "valid", "auditor": "not an allowed key"}


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/allowed_signers"
    p.write_text(p.read_text().replace("ada@example.org ", 'ada@example.org valid-after="20990101",'))
