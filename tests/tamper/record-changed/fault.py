"""One record of one shard is not what was drawn."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    shard = tools.first_shard(study)
    tools.edit_gz(shard, b'"heads"', b'"tails"')
