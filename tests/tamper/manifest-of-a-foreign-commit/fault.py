"""The commit that a manifest names is of this history, from before the seal."""

from pathlib import Path
from types import ModuleType

import forge

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "seal/manifest.json"


def apply(study: Path, tools: ModuleType) -> None:
    tree = tools.git(study, "rev-parse", "HEAD^{tree}")
    foreign = tools.git(study, "commit-tree", tree, "-m", "Of nobody")
    forge.manifest(study, lambda value: value.update(commit=foreign))
    forge.sealed_again(study, commit=foreign)
