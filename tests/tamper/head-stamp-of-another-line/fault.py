"""A signed head of a line that the ledger does not have attests another ledger."""

import json
from pathlib import Path
from types import ModuleType

import forge
import lives_heads
import seals

STUDY = "heads"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "stamps/"


def apply(study: Path, tools: ModuleType) -> None:
    folder = lives_heads.of(study, "ada")[-1]
    head = json.loads((folder / "ledger.head.json").read_bytes()) | {"head": "0" * 64}
    data = forge.canonical(head)
    (folder / "ledger.head.json").write_bytes(data)
    (folder / "ledger.head.json.sig").write_bytes(seals.signature(study, "ada", data, "prereg-ledger"))
    lives_heads.stamp(folder)
    lives_heads.commit(study)
