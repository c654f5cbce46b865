"""The manifest of an amended seal has the digest that the next one names."""

from pathlib import Path
from types import ModuleType

import seals

STUDY = "signed"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    tools.flip(seals.earlier(study) / "manifest.json", 40)
