"""A collector cannot have the author's head stamped under another signature."""

from pathlib import Path
from types import ModuleType

import lives_heads
import seals

STUDY = "heads"
AT = "analysed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    folder = lives_heads.of(study, "ada")[-1]
    data = (folder / "ledger.head.json").read_bytes()
    (folder / "ledger.head.json.sig").write_bytes(seals.signature(study, "col", data, "prereg-ledger"))
    lives_heads.stamp(folder)
    lives_heads.commit(study)
