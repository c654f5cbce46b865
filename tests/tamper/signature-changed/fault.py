"""A damaged signature signs nothing."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "seal/manifest.json.sig"
    lines = p.read_text().splitlines()
    lines[3] = lines[3][::-1]
    p.write_text("\n".join(lines) + "\n")
