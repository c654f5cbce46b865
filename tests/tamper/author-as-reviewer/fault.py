"""Nobody audits their own study."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "reviewer"


def apply(study: Path, tools: ModuleType) -> None:
    p = study.parent.parent / "trust/roles.json"
    p.write_text(p.read_text().replace('"author"', '"author", "reviewer"'))
