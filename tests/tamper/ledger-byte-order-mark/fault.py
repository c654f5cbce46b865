"""Bytes in front of the first line change what was chained."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "ledger.jsonl"
    p.write_bytes(b"\xef\xbb\xbf" + p.read_bytes())
