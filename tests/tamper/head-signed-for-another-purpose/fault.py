"""A signature of a seal is none of a head: the namespace is signed too."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sign(study, "ledger.head.json", "col", "prereg-seal")
