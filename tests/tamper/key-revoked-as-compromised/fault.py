"""Whoever has a stolen key can write any time: without a time from outside nothing that it signed counts."""

import json
from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "revoked"


def apply(study: Path, tools: ModuleType) -> None:
    key = json.loads((study / "seal/manifest.json").read_bytes())["author"]["key"]
    entry = {"key": key, "at": "2099-01-01T00:00:00+00:00", "reason": "compromised", "note": "a test"}
    value = {"schema": "prereg/revocations/v1", "revocations": [entry]}
    (study.parent.parent / "trust/revocations.json").write_text(json.dumps(value))
