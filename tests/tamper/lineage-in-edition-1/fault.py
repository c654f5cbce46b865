"""A study of edition 1 was never amended: the folder belongs to nothing."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "auditor")
NAMED = "seal/lineage"


def apply(study: Path, tools: ModuleType) -> None:
    (study / "seal/lineage").mkdir()
    (study / "seal/lineage/manifest.json").write_bytes((study / "seal/manifest.json").read_bytes())
