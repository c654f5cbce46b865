"""The reviewer signed other bytes."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "report.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "audit/report.json"
    p.write_bytes(p.read_bytes().replace(b"AGREES", b"FAILED"))
