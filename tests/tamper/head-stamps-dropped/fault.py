"""Without the stamps nothing tells the owner of a stolen key from the thief."""

import shutil
from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(study / "stamps")
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
