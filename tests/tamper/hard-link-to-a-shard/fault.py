"""The bytes of a shard have one name only."""

import os
from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    os.link(tools.first_shard(study), study.parent / "other-name")
