"""The meta says of which attempt its records are."""

from pathlib import Path
from types import ModuleType

import tries

STUDY = "third"
AT = "collected"
CAUGHT_BY = ("verify", "auditor")
NAMED = "00001.meta.json"


def apply(study: Path, tools: ModuleType) -> None:
    tries.rewrite(study, f"{tries.TWICE}/00001", meta=lambda value: value.update(attempt=1))
