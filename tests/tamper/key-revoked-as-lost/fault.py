"""A key that was revoked signs nothing afterwards."""

import json
from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "revoked"


def apply(study: Path, tools: ModuleType) -> None:
    key = json.loads((study / "seal/manifest.json").read_bytes())["author"]["key"]
    entry = {"key": key, "at": "2020-01-01T00:00:00+00:00", "reason": "lost", "note": "a test"}
    value = {"schema": "prereg/revocations/v1", "revocations": [entry]}
    (study.parent.parent / "trust/revocations.json").write_text(json.dumps(value))
