"""A reason that no rule knows would leave open what it does."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "eve", "forgotten", "2020-01-01T00:00:00+00:00")
