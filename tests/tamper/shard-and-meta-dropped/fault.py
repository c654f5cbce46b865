"""The ledger still says that the shard was stored."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "00000"


def apply(study: Path, tools: ModuleType) -> None:
    s = tools.first_shard(study)
    s.unlink()
    s.with_name("00000.meta.json").unlink()
