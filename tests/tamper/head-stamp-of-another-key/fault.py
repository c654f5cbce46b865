"""The reviewer's stamp does not say when the author's head was signed: a thief may have, long after."""

import shutil
from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "audited"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    shutil.rmtree(lives_heads.of(study, "ada")[-1])
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
