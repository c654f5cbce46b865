"""The meta is bound by the ledger."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    p = tools.first_shard(study).with_name("00000.meta.json")
    data = p.read_bytes()
    swapped = data.replace(b'"network":"cut"', b'"network":"not-cut"')
    p.write_bytes(swapped if swapped != data else data.replace(b"not-cut", b"cut"))
