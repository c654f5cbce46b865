"""HEAD has other bytes of a sealed file than were sealed."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    command = study / "coin.py"
    data = command.read_bytes()
    command.write_bytes(data + b"\n")
    tools.git(study, "commit", "-q", "-a", "-m", "A line")
    command.write_bytes(data)
