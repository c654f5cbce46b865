"""Whoever has a stolen key can write any time, and no stamp says otherwise."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
