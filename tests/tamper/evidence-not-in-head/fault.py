"""Evidence that lies here and is not committed can be exchanged, and no history tells."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "records/main.fair.new/00000.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    shard = tools.first_shard(study)
    tools.git(study, "rm", "-q", "--cached", "--", str(shard))
    tools.git(study, "commit", "-q", "-m", "Too large for us")
