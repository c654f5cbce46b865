"""The stamp saves the seal of a stolen key; the heads that it signed have no stamp."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "first"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
