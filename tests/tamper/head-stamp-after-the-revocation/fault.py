"""What the thief had stamped once the theft was known says nothing of before."""

from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    lives_heads.stamp(lives_heads.of(study, "ada")[-1], time=lives_heads.moment(10)[0])
    seals.revoke(study, "ada", "compromised", lives_heads.moment(5)[1])
    lives_heads.commit(study)
