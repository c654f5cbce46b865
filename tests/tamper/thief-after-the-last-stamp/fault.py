"""After the last stamp nothing tells the owner of the key from the thief, who tells a story of their own."""

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
    seals.revoke(study, "ada", "compromised", "2099-01-01T00:00:00+00:00")
    lives_heads.commit(study)
