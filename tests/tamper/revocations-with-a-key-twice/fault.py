"""Of a member that stands twice the last one would win, and revoke nobody."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    path = study.parent.parent / "trust/revocations.json"
    seals.revoke(study, "ada", "lost", "2020-01-01T00:00:00+00:00")
    path.write_text(path.read_text()[:-1] + ', "revocations": []}')
