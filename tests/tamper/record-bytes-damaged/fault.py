"""A shard that does not unpack is not evidence."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    tools.flip(tools.first_shard(study), 30)
