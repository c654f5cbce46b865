"""A finished unit cannot fail: whoever disliked its draws could have them drawn again, or lose them."""

from pathlib import Path
from types import ModuleType
from typing import Any

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"
UNIT = "drawn.same.off"


def apply(study: Path, tools: ModuleType) -> None:
    def lose(found: list[Any]) -> None:
        end = tries.at(found, "collection-ended", complete=True)
        found[end]["body"]["invalid"] = sorted([*found[end]["body"]["invalid"], UNIT])
        tries.add(found, end, "unit-invalid", unit=UNIT, attempt=1, reason="late", cause="study-ceiling")

    tries.entries(study, lose)
