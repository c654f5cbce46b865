"""A seal is of one study: another one's, signature and all, does not fit."""

import shutil
from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    other = study.parent / "other"
    shutil.copytree(study, other)
    forge.manifest(other, lambda value: value.update(study="other"))
    shutil.rmtree(study / "seal")
    shutil.move(other / "seal", study / "seal")
    shutil.rmtree(other)
