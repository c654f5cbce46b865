"""Each shard belongs to its own seeds; two of them exchanged are two wrong ones."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000"


def apply(study: Path, tools: ModuleType) -> None:
    s = tools.first_shard(study)
    o = s.with_name("00001.jsonl.gz")
    a, b = s.read_bytes(), o.read_bytes()
    s.write_bytes(b)
    o.write_bytes(a)
