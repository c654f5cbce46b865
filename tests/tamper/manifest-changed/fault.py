"""The signature covers every byte of the manifest."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "seal/manifest.json"
    p.write_bytes(p.read_bytes().replace(b'"rules":1', b'"rules":1 '))
