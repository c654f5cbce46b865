"""Two units of one study may not draw the same seeds."""

import json
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("auditor",)
NAMED = {"auditor": "share"}


def apply(study: Path, tools: ModuleType) -> None:
    value = json.loads((study / "seeds.json").read_bytes())
    for name in ("first", "end"):
        value["blocks"][1][name] = value["blocks"][0][name]
    forge.sealed_file(study, "seeds.json", json.dumps(value).encode())
