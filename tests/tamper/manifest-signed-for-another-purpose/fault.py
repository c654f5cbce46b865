"""A signature for a ledger is none for a seal: the namespace is signed too."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sign(study, "seal/manifest.json", "ada", "prereg-ledger")
