"""The limit that the workers had is the protocol's."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "contained"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    tries.entries(
        study,
        lambda found: found[tries.at(found, "collection-started")]["body"]["container"].update(
            memory_mib=1024
        ),
    )
