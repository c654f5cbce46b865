"""Authored files are parsed as strictly as a machine's."""

from pathlib import Path
from types import ModuleType

AT = "draft"
EXIT = {"seal": 2}
CAUGHT_BY = ("seal",)
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "protocol.json"
    p.write_bytes(p.read_bytes().replace(b'"alpha": 0.05', b'"alpha": 0.05, "alpha": 0.5'))
    tools.git(study, "commit", "-q", "-a", "-m", "Alpha")
