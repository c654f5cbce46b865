"""A key that trust gives to nobody signs no head."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    tools.sign(study, "ledger.head.json", "eve", "prereg-ledger")
