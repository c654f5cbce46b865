"""A graft gives a commit other parents, on this machine only."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "grafts"


def apply(study: Path, tools: ModuleType) -> None:
    head = tools.git(study, "rev-parse", "HEAD")
    (study.parent.parent / ".git/info").mkdir(exist_ok=True)
    (study.parent.parent / ".git/info/grafts").write_text(f"{head}\n")
