"""A signature of the plan before the amendment is none of the new one."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "cosigned"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/cosign/cyd@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    data = (seals.earlier(study, 1) / "manifest.json").read_bytes()
    seals.countersigned(study, seals.signature(study, "cyd", data))
