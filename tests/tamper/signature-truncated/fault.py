"""Half a signature signs nothing, however whole its armor is."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    file = study / "seal/manifest.json.sig"
    begin, *lines, end = file.read_text().splitlines()
    file.write_text("\n".join([begin, *lines[: len(lines) // 2], end]) + "\n")
