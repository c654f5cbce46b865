"""A key that was lost before the seal signed no seal."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "revoked"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "ada", "lost", "2020-01-01T00:00:00+00:00")
