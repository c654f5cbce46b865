"""A second copy of a shard under another number is not in the plan."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00007"


def apply(study: Path, tools: ModuleType) -> None:
    s = tools.first_shard(study)
    (s.parent / "00007.jsonl.gz").write_bytes(s.read_bytes())
    (s.parent / "00007.meta.json").write_bytes(s.with_name("00000.meta.json").read_bytes())
