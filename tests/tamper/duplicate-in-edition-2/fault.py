"""A study of edition 2 has no entry duplicate: a program of that edition could not read it."""

from pathlib import Path
from types import ModuleType
from typing import Any

import tries

STUDY = "second"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "ledger.jsonl"


def apply(study: Path, tools: ModuleType) -> None:
    def change(found: list[Any]) -> None:
        body = found[tries.at(found, "shard-stored")]["body"]
        told = {name: body[name] for name in ("unit", "shard", "attempt", "records_sha256", "records_size")}
        told |= {"lines_sha256": "0" * 64, "lines_size": 1, "lines": body["draws"], "differing": 0}
        tries.add(found, len(found) - 1, "duplicate", **told)

    tries.entries(study, change)
