"""A checkout that rewrites line ends changes sealed bytes; the error names it as such."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "coin.py"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "coin.py"
    p.write_bytes(p.read_bytes().replace(b"\n", b"\r\n"))
