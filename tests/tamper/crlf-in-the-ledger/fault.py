"""A checkout that rewrites line ends changes every digest of the chain."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "ledger.jsonl"
    p.write_bytes(p.read_bytes().replace(b"\n", b"\r\n"))
