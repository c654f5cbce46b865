"""Two times of revocation leave open which one counts."""

import json
from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    value = seals.revoke(study, "eve", "lost", "2020-01-01T00:00:00+00:00")
    value["revocations"].append(value["revocations"][0] | {"at": "2099-01-01T00:00:00+00:00"})
    (study.parent.parent / "trust/revocations.json").write_text(json.dumps(value))
