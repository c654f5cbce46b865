"""A unit without a block of seeds has no plan."""

import json
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seeds.json"


def apply(study: Path, tools: ModuleType) -> None:
    value = json.loads((study / "seeds.json").read_bytes())
    value["blocks"].pop()
    forge.sealed_file(study, "seeds.json", json.dumps(value).encode())
