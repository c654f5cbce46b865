"""What a link leads to may be another file for everybody: trust is a plain file."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "trust/revocations.json"


def apply(study: Path, tools: ModuleType) -> None:
    seals.revoke(study, "eve", "lost", "2020-01-01T00:00:00+00:00")
    place = study.parent.parent / "trust/revocations.json"
    place.rename(place.with_name("elsewhere.json"))
    place.symlink_to("elsewhere.json")
