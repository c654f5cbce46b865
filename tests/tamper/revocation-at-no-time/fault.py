"""A day that no calendar has is before and after nothing."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "eve", "lost", "2026-02-30T00:00:00+00:00")
