"""The reviewer cannot take away what the author told: the author's head is of other lines."""

from pathlib import Path
from types import ModuleType
from typing import Any

import seals

STUDY = "signed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger"


def apply(study: Path, tools: ModuleType) -> None:
    def change(found: list[Any]) -> None:
        next(e for e in found if e["type"] == "deviation")["body"]["text"] = "Nothing."

    seals.again(study, change, "rex")
