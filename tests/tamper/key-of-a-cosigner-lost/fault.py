"""A cosignature counts at the time of its entry: by then the key was lost."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "cosign/cyd@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "cyd", "lost", "2020-01-01T00:00:00+00:00")
