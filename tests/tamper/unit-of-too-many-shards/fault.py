"""A shard's name has five digits: a plan of more shards in a unit is refused as a plan."""

import json
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = {"verify": "100,000", "collect": "100,000", "auditor": "more shards"}


def apply(study: Path, tools: ModuleType) -> None:
    protocol = json.loads((study / "protocol.json").read_bytes())
    for sampling in protocol["sampling"].values():
        sampling.update(draws=100_001, rows=1, shard_requests=1)
    forge.sealed_file(study, "protocol.json", json.dumps(protocol).encode())
    seeds = json.loads((study / "seeds.json").read_bytes())
    for i, block in enumerate(seeds["blocks"]):
        block.update(first=str(i * 1_000_000), end=str(i * 1_000_000 + 100_001))
    forge.sealed_file(study, "seeds.json", json.dumps(seeds).encode())
    forge.sealed_again(study)
