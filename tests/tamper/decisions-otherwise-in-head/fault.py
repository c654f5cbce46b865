"""The decisions that others read are those that were checked."""

from pathlib import Path
from types import ModuleType

AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "analysis/decisions.json"


def apply(study: Path, tools: ModuleType) -> None:
    decisions = study / "analysis/decisions.json"
    data = decisions.read_bytes()
    decisions.write_bytes(data.replace(b"DIFFERS", b"NOT_REJECTED"))
    tools.git(study, "commit", "-q", "-a", "-m", "Better")
    decisions.write_bytes(data)
