"""Who judges the records does not draw them."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study,
        lambda found: found[tries.at(found, "attempt", **tries.place("drawn.same.on", 1, 2))].update(
            actor="rex@example.org"
        ),
    )
