"""A cosignature by a stolen key counts by a stamp that attests its entry, and by none else."""

import shutil
from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "cosign/bob@example.org.sig"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(study / "stamps")
    seals.revoke(study, "bob", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
