"""A file of trust that is no JSON is refused, not passed over."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    path = study.parent.parent / "trust/revocations.json"
    seals.revoke(study, "eve", "lost", "2020-01-01T00:00:00+00:00")
    path.write_text(path.read_text().replace('"a test"', "NaN"))
