"""An object whose bytes are not those of its name is not what was committed."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "git", "auditor": "git"}


def apply(study: Path, tools: ModuleType) -> None:
    name = tools.git(study, "rev-parse", "HEAD~1^{tree}")
    p = study.parent.parent / ".git/objects" / name[:2] / name[2:]
    data = p.read_bytes()[:-9]
    p.unlink()
    p.write_bytes(data)
