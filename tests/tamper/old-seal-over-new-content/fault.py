"""A study that was rewritten keeps the old seal, whose signature is still good."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "protocol.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "protocol.json"
    p.write_bytes(p.read_bytes().replace(b'"threshold": 0.01', b'"threshold": 0.5'))
    tools.git(study, "commit", "-q", "-a", "-m", "A better threshold")
