"""Each stamp is of one seal."""

from pathlib import Path
from types import ModuleType

import seals
import stamps

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/timestamp"


def apply(study: Path, tools: ModuleType) -> None:
    for name in (stamps.REQUEST, stamps.RESPONSE):
        one, two = study / name, seals.earlier(study) / Path(name).name
        kept = one.read_bytes()
        one.write_bytes(two.read_bytes())
        two.write_bytes(kept)
