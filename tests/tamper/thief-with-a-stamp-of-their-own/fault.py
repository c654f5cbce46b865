"""A stamp that the thief gets in time is too late once the theft is dated before it."""

from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.head.json"


def apply(study: Path, tools: ModuleType) -> None:
    told = {"about": [], "text": "The machine was another."}
    seals.add(study, "deviation", told, "ada")
    lives_heads.stamp_present(study, time=lives_heads.moment(10)[0])
    seals.revoke(study, "ada", "compromised", lives_heads.moment(5)[1])
    lives_heads.commit(study)
