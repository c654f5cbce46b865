"""Draws that nobody planned are no evidence, though the collector has entered and signed them."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = {"verify": "is no shard of the plan", "analyse": "is no shard of the plan", "auditor": "00099"}


def apply(study: Path, tools: ModuleType) -> None:
    shard = tools.first_shard(study)
    shard.with_name("00099.jsonl.gz").write_bytes(shard.read_bytes())
    value = json.loads(shard.with_name("00000.meta.json").read_bytes()) | {"shard": 99}
    meta = forge.canonical(value)
    shard.with_name("00099.meta.json").write_bytes(meta)

    def entered(found: list[Any]) -> None:
        at = next(i for i, e in enumerate(found) if e["type"] == "shard-stored")
        entry = json.loads(json.dumps(found[at]))
        entry["body"] |= {"unit": shard.parent.name, "shard": 99, "meta_sha256": tools.sha(meta)}
        entry["body"] |= {"records_sha256": tools.sha(shard.read_bytes())}
        entry["body"] |= {"records_size": len(shard.read_bytes())}
        found.insert(at + 1, entry)
        found[-1]["body"]["stored"] += 1

    forge.entries(study, entered)
    forge.amend(study)
