"""A seal that was taken out and put back could have been another in between."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    manifest = study / "seal/manifest.json"
    tools.git(study, "rm", "-q", "--cached", "--", str(manifest))
    tools.git(study, "commit", "-q", "-m", "Unsealed")
    tools.git(study, "add", "--", str(manifest))
    tools.git(study, "commit", "-q", "-m", "Sealed again")
