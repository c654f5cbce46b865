"""A shard is begun once in a run: another beginning is another run, or a try that is hidden."""

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
        lambda found: tries.add(
            found,
            tries.at(found, "shard-stored", **tries.place("drawn.same.on", 1, 2)),
            "attempt",
            **tries.place("drawn.same.on", 1, 2),
        ),
    )
