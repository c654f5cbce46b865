"""Parsers differ on which of two equal names counts."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "roles.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/roles.json"
    name = '"ada@example.org"'
    p.write_text(p.read_text().replace(name, f'{name}: ["collector"], {name}', 1))
