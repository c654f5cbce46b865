"""A report by a stolen key counts by a stamp that attests its entry, and by none else."""

import shutil
from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "audited"
CAUGHT_BY = ("verify", "auditor")
NAMED = {"verify": "audit/report.json.sig", "auditor": "ledger.head.json.sig"}


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(lives_heads.of(study, "rex")[-1])
    seals.revoke(study, "rex", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
