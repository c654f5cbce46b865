"""What HEAD has beside the evidence that lies here comes with every clone."""

from pathlib import Path
from types import ModuleType

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = "records/main.fair.new/00099.jsonl.gz"


def apply(study: Path, tools: ModuleType) -> None:
    more = study / "records/main.fair.new/00099.jsonl.gz"
    more.write_bytes(tools.first_shard(study).read_bytes())
    tools.git(study, "add", "--", str(more))
    tools.git(study, "commit", "-q", "-m", "One more")
    more.unlink()
