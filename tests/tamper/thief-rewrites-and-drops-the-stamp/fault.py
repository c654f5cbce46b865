"""Whoever rewrites what was stamped must drop the stamp, and with it goes what it saved."""

import shutil
from pathlib import Path
from types import ModuleType

import forge
import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(lives_heads.of(study, "ada")[-1])
    forge.decisions(study, forge.of("fair", verdict="FAILS"))
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
