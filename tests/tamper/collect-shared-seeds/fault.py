"""Two units of one sealed study may not draw the same seeds, whoever signed that."""

import json
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("collect",)
NAMED = {"collect": "main"}


def apply(study: Path, tools: ModuleType) -> None:
    value = json.loads((study / "seeds.json").read_bytes())
    for name in ("first", "end"):
        value["blocks"][1][name] = value["blocks"][0][name]
    forge.sealed_file(study, "seeds.json", json.dumps(value).encode())
    seal = tools.sha((study / "seal/manifest.json").read_bytes())
    signature = tools.sha((study / "seal/manifest.json.sig").read_bytes())
    body = {"seal": seal, "signature_sha256": signature}
    forge.entries(study, lambda found: found[0]["body"].update(body), who="ada")
    forge.amend(study)
    tools.git(study, "tag", "-f", "-a", "-m", "Sealed", "prereg/coin/sealed")
