"""That the workers had the protocol's limit is told."""

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
        lambda found: found[tries.at(found, "collection-started")]["body"]["container"].pop("memory_mib"),
    )
