"""A study of edition 2 has no entry attempt: a program of that edition could not read it."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study,
        lambda found: tries.add(
            found, tries.at(found, "shard-stored"), "attempt", **tries.place("drawn.same.on", 0, 1)
        ),
    )
