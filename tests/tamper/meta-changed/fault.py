"""The meta is bound by the ledger."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = tools.first_shard(study).with_name("00000.meta.json")
    p.write_bytes(p.read_bytes().replace(b'"network":"not-cut"', b'"network":"cut"'))
