"""Who is no author seals nothing, though the key is still theirs."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "author"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/roles.json"
    p.write_text(p.read_text().replace('"author"', '"collector"', 1))
