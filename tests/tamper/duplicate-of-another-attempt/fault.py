"""A second result is of an attempt in which the shard is stored."""

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
        lambda found: found[tries.at(found, "duplicate", **tries.place("walked.other.on", 0, 2))][
            "body"
        ].update(attempt=1),
    )
